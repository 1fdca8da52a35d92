"""`spec.conversion` of a CustomResourceDefinition: how objects get from one version to another."""

from __future__ import annotations

import base64
import binascii
import ssl
from urllib.parse import urlsplit

from apiserver.model.errors import Cause
from apiserver.registry import names
from apiserver.registry.behaviours.base import Object, one_of
from apiserver.schema import messages

_REVIEWS = ("v1", "v1beta1")
_FORM = "desired format: https://host[/path]"


def default(spec: Object) -> None:
    """Of a definition's spec, in place."""
    conversion = spec.setdefault("conversion", {"strategy": "None"})
    service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
    if service is not None:
        service.setdefault("port", 443)


def check(path: str, conversion: Object) -> list[Cause]:
    """In kube-apiserver's words, which call the fields as it does inside."""
    strategy = conversion.get("strategy")
    if not strategy:
        return [messages.required(f"{path}.strategy")]
    causes = one_of(f"{path}.strategy", strategy, ("None", "Webhook"))
    webhook = conversion.get("webhook") or {}
    client, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if strategy == "Webhook":
        return causes + _client(f"{path}.webhookClientConfig", client) + _reviews(path, reviews)
    text = "should not be set when strategy is not set to Webhook"
    for field, value in (("webhookClientConfig", client), ("conversionReviewVersions", reviews)):
        causes += [messages.forbidden(f"{path}.{field}", text)] if value else []
    return causes


def _client(path: str, client: Object | None) -> list[Cause]:
    if client is None:
        return [messages.required(path, "required when strategy is set to Webhook")]
    url, service = client.get("url"), client.get("service")
    causes: list[Cause] = []
    if (url is None) == (service is None):
        causes.append(messages.required(path, "exactly one of url or service is required"))
    elif url is not None:
        causes += _url(f"{path}.url", url)
    else:
        causes += _service(f"{path}.service", service or {})
    bundle = client.get("caBundle")
    return causes + (_bundle(f"{path}.caBundle", bundle) if bundle else [])


def _url(path: str, url: str) -> list[Cause]:
    try:
        parts = urlsplit(url)
        user, host = parts.username or "", parts.netloc
    except ValueError as error:
        return [messages.required(path, f"url must be a valid URL: {error}; {_FORM}")]
    causes = []
    if parts.scheme != "https":
        text = f"'https' is the only allowed URL scheme; {_FORM}"
        causes.append(messages.invalid(path, parts.scheme, text))
    if not host:
        causes.append(messages.invalid(path, host, f"host must be specified; {_FORM}"))
    for what, value in (("user information is", user), ("fragments are", parts.fragment),
                        ("query parameters are", parts.query)):  # fmt: skip
        if value:
            causes.append(messages.invalid(path, value, f"{what} not permitted in the URL"))
    return causes


def _service(path: str, service: Object) -> list[Cause]:
    causes = [messages.required(f"{path}.{field}") for field in ("name", "namespace") if not service.get(field)]
    port, way = service.get("port"), service.get("path")
    if isinstance(port, int) and not 1 <= port <= 65535:
        text = "port is not valid: must be between 1 and 65535, inclusive"
        causes.append(messages.invalid(f"{path}.port", port, text))
    if way is None or way == "/":
        return causes
    if not way.startswith("/"):
        causes.append(messages.invalid(f"{path}.path", way, "must start with a '/'"))
    segments = way[1:].split("/")
    if segments and not segments[-1]:
        segments.pop()
    for index, segment in enumerate(segments):
        if not segment:
            causes.append(messages.invalid(f"{path}.path", way, f"segment[{index}] may not be empty"))
        else:
            texts = names.dns_subdomain(segment)
            causes += [messages.invalid(f"{path}.path", way, f"segment[{index}]: {text}") for text in texts]
    return causes


def _bundle(path: str, bundle: str) -> list[Cause]:
    try:
        text = base64.b64decode(bundle).decode().strip()
        if text:
            ssl.create_default_context(cadata=text)
    except (ssl.SSLError, ValueError, binascii.Error):
        why = "unable to load root certificates: unable to parse bytes as PEM block"
        return [messages.invalid(path, bundle, why)]
    return []


def _reviews(path: str, versions: list[str]) -> list[Cause]:
    at = f"{path}.conversionReviewVersions"
    if not versions:
        return [messages.required(at)]
    causes: list[Cause] = []
    for index, version in enumerate(versions):
        if version in versions[:index]:
            causes.append(messages.invalid(f"{at}[{index}]", version, "duplicate version"))
            continue
        causes += [messages.invalid(f"{at}[{index}]", version, text) for text in names.dns_1035(version)]
    if not set(versions) & set(_REVIEWS):
        causes.append(messages.invalid(at, versions, f"must include at least one of {', '.join(_REVIEWS)}"))
    return causes
