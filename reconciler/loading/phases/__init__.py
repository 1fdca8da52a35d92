"""What each workspace passes on its way through a commit, one function a phase. `loading/ways` makes lists of them."""
