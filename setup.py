"""Only what pyproject.toml cannot say: the directory `repo-layout` is installed as the package `repo_layout`."""

from setuptools import find_packages, setup

setup(packages=[*find_packages(include=["apiserver*", "reconciler*"]), "repo_layout"])
