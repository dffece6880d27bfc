"""Checks names of external code in files. Files are untrusted, so they never cause an import."""

import sys

# Libraries that build an encoder from a name in their own table: such a name runs no other code.
LIBRARIES = ("timm:", "hf:", "torchvision:")


def needs_import(name: str) -> bool:
    """Whether `package.module:object` leads outside the package, to a module that this process has not imported yet.

    Ask this of a name that comes from a file. What the name leads to must belong to its own package, and never to the
    standard library, which is always imported and holds neither networks nor methods. Other names are in tables.
    """
    module, colon, attribute = name.partition(":")
    package = module.partition(".")[0]
    if not colon or name.startswith(LIBRARIES):
        return False
    if module not in sys.modules or package in {"__main__", *sys.stdlib_module_names}:
        return True
    if package == "papi" and module.split(".")[1:2] not in (["networks"], ["methods"]):
        return True  # a file must not choose among all functions of the package either
    found = getattr(sys.modules[module], attribute, None)
    return not callable(found) or str(getattr(found, "__module__", None)).partition(".")[0] != package
