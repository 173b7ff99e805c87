#!/usr/bin/env python3
"""Checks every dependency against deny.toml without a network: licences, sources, banned packages.

It reads `cargo metadata` for all targets. cargo-deny reads the same file and checks advisories too, where it has a
network.
"""

import json
import re
import subprocess
import sys
import tomllib

REGISTRY = "registry+"


def allowed(expression, allow):
    """Does an SPDX expression (with the old `/` for OR) leave a way to use only allowed licences?"""
    tokens = re.findall(r"\(|\)|[\w.+-]+(?: WITH [\w.-]+)?", expression.replace("/", " OR "))

    def either():
        value = both()
        while tokens and tokens[0] == "OR":
            tokens.pop(0)
            value = both() or value
        return value

    def both():
        value = one()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            value = one() and value
        return value

    def one():
        token = tokens.pop(0)
        if token == "(":
            value = either()
            tokens.pop(0)
            return value
        return token in allow

    return either()


def main():
    with open("deny.toml", "rb") as file:
        deny = tomllib.load(file)
    allow = set(deny["licenses"]["allow"])
    banned = {entry["crate"] for entry in deny["bans"]["deny"]}
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    packages = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["packages"]
    faults, used = [], set()
    for package in packages:
        name = f'{package["name"]} {package["version"]}'
        expression = package["license"] or ""
        used |= set(re.findall(r"[\w.+-]+", expression)) & allow
        if not expression or not allowed(expression, allow):
            faults.append(f"{name}: licence {expression!r} is not allowed")
        if package["source"] and not package["source"].startswith(REGISTRY):
            faults.append(f'{name}: comes from {package["source"]}')
        if package["name"] in banned:
            faults.append(f"{name}: is banned")
    faults += [f"{licence}: allowed but no dependency has it" for licence in sorted(allow - used)]
    print("\n".join(faults) if faults else f"{len(packages)} packages: licences, sources and bans as deny.toml says")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
