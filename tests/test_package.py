"""What is installed works away from the source tree."""

import subprocess
import sys
import venv
from pathlib import Path

import numpy as np

import papi

ROOT = Path(__file__).parents[1]


def test_a_wheel_trains_from_another_folder(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    wheel = next(tmp_path.glob("*.whl"))
    assert wheel.stat().st_size < 9e6
    # The heavy dependencies come from this environment; PaPi itself only from the wheel.
    environment = tmp_path / "venv"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", str(wheel)], check=True, capture_output=True)
    site = next((environment / "lib").glob("python*/site-packages"))
    ours = next(path for path in sys.path if path.endswith("site-packages"))
    (site / "dependencies.pth").write_text(f"{ours}\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    arguments = ["train", "--limit", "200", "--epochs", "1", "--threads", "1", "--out", "run"]
    done = subprocess.run(
        [environment / "bin" / "papi", *arguments], cwd=elsewhere, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    where = [python, "-c", "import papi; print(papi.__file__)"]
    located = subprocess.run(where, cwd=elsewhere, capture_output=True, text=True, check=True).stdout
    assert located.startswith(str(environment))
    names = papi.load(elsewhere / "run").predict(np.zeros((2, 28, 28), np.uint8))
    assert names.shape == (2,)
