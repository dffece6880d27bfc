"""Runs the commands of tutorials as in a terminal of 88 columns. The kernel that builds the site loads this file.

Jupyter's own `%%bash` asks programs for colours, which are no text, and cuts what they print into pieces.
"""

import os
import subprocess

from IPython import get_ipython


def bash(options: str, commands: str) -> None:
    """Print what commands write, and fail with the first that fails."""
    environment = {name: value for name, value in os.environ.items() if "COLOR" not in name} | {"COLUMNS": "88"}
    done = subprocess.run(["bash", "-euc", commands], env=environment, capture_output=True, text=True, check=False)
    print(done.stdout, end="")
    if done.returncode:
        raise RuntimeError(f"{commands}\n{done.stderr}")


get_ipython().register_magic_function(bash, "cell")
