"""Puts one API worker together and runs it until it is told to stop.

Called by __main__.py; the only place of the apiserver where its parts are chosen.
"""

from __future__ import annotations

import socket

from apiserver import heap
from apiserver.app import App
from apiserver.auth.accounts import Accounts, Issuer
from apiserver.auth.authn import Authenticator
from apiserver.auth.keys import Keys
from apiserver.auth.pki import TokenSigner
from apiserver.auth.rbac import Authorizer
from apiserver.endpoints.commitviews import CommitViews
from apiserver.endpoints.homes import homes
from apiserver.endpoints.kube import KubernetesAPI
from apiserver.endpoints.realms import Realm
from apiserver.endpoints.targets import EmbeddedTargets
from apiserver.registry.builtins.served import target_builtins
from apiserver.registry.catalog import Catalog
from apiserver.registry.outbound import Outbound
from apiserver.registry.webhookconversion import Webhooks
from apiserver.settings import ServerSettings
from apiserver.stores import open_main_store, open_serving, open_target_store
from apiserver.worker import server


def serve(settings: ServerSettings, listener: socket.socket) -> None:
    """Open the stores, answer requests, return when stopped. Raises what opening them raises."""
    signer = TokenSigner(Keys(settings.keys_dir))
    store = open_main_store(settings)
    authorizer = Authorizer(store)
    inert = target_builtins()
    outbound = Outbound(settings.webhook_networks)
    targets = EmbeddedTargets(
        store,
        settings.targets_dir,
        lambda directory: open_target_store(settings, directory),
        lambda target: Catalog(target, inert, Webhooks(target, outbound).bind),
    )
    catalog = Catalog(store, bind=Webhooks(store, outbound).bind)
    issuer = Issuer(settings.service_account_issuer, (settings.service_account_issuer,))
    accounts = Accounts(signer, issuer, homes(store, catalog, targets))
    authenticator = Authenticator(settings.token_auth_file, accounts, anonymous=settings.anonymous)
    commits = CommitViews(
        settings.data_dir,
        lambda directory: open_serving(directory, sync=False),
        lambda found: Realm(found, Catalog(found), authorizer),  # no webhook is called about what was
    )
    kubernetes = KubernetesAPI(store, catalog, authenticator, authorizer, settings, targets, accounts, commits)
    app = App(settings, store, authenticator, authorizer, kubernetes)
    heap.settle()

    def stop() -> None:
        kubernetes.end_watches()
        targets.end_watches()

    try:
        server(app, settings, stop).run([listener])
    finally:
        kubernetes.close()
        targets.close()
        store.close()
