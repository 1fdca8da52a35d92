"""What happens to a write before it is stored: small plugins, called by the endpoints in a fixed order."""
