"""Installs what a build needs: Debian packages and a Python environment. Quick when there is nothing to do.

The environment lives in the user's cache folder, named by the content of the requirements, so that every clone and
worktree shares it; `.venv` in the checkout is a link to it.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

APT_PACKAGES = """
    llvm-19-dev liblld-19-dev lld-19 clang-19 libclang-rt-19-dev clang-format-19 clang-tidy-19 cmake ninja-build ccache
    libfmt-dev libcli11-dev nlohmann-json3-dev libgtest-dev libprotobuf-dev protobuf-compiler libz3-dev libisl-dev
    libzip-dev zlib1g-dev libzstd-dev libjpeg62-turbo-dev libpng-dev libwebp-dev libtiff-dev libdeflate-dev
    libopenjp2-7-dev qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross
""".split()

# Debian's own Python comes without these; any other brings them.
DEBIAN_PYTHON_PACKAGES = ["python3-dev", "python3-venv"]


class SetupError(Exception):
    """One sentence that says what could not be set up."""


def run(command, what, **options):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if result.returncode != 0:
        tail = "\n".join("  " + line for line in result.stdout.strip().splitlines()[-8:])
        raise SetupError(f"{what} (is the network reachable?); '{' '.join(map(str, command[:4]))} …' said:\n{tail}")


def missing_packages():
    wanted = list(APT_PACKAGES)
    if sys.base_prefix == "/usr":
        wanted += DEBIAN_PYTHON_PACKAGES
    query = subprocess.run(
        ["dpkg-query", "-W", "-f=${Package} ${db:Status-Status}\n", *wanted], capture_output=True, text=True
    )
    installed = {line.split()[0] for line in query.stdout.splitlines() if line.endswith(" installed")}
    return [package for package in wanted if package not in installed]


def ensure_packages():
    if not shutil.which("dpkg-query"):
        raise SetupError("setting up needs Debian 12's packages, and this system has no dpkg")
    missing = missing_packages()
    if not missing:
        return
    prefix = []
    if os.geteuid() != 0:
        if not shutil.which("sudo"):
            raise SetupError(f"installing {' '.join(missing)} needs root, and there is no sudo")
        prefix = ["sudo"]
    print(f"setup: installing {len(missing)} Debian packages: {' '.join(missing)}", flush=True)
    environment = prefix + ["env", "DEBIAN_FRONTEND=noninteractive"]
    run(environment + ["apt-get", "update", "-q"], "could not refresh the list of Debian packages")
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends"]
    run(environment + install + missing, f"could not install Debian packages {' '.join(missing)}")


def environment_folder(requirements):
    key = hashlib.sha256("".join([sys.version, sys.base_prefix, *(r.read_text() for r in requirements)]).encode())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "lathe" / f"venv-{key.hexdigest()[:16]}"


def ensure_environment(extra=()):
    """Makes .venv hold requirements-dev.txt and the `extra` requirement files, and returns its Python."""
    folder = make_environment([ROOT / "requirements-dev.txt", *(ROOT / name for name in extra)])
    if not extra:
        link = ROOT / ".venv"
        if not link.is_symlink() or link.readlink() != folder:
            if link.is_dir() and not link.is_symlink():
                shutil.rmtree(link)
            link.unlink(missing_ok=True)
            link.symlink_to(folder)
    return folder / "bin" / "python"


def make_environment(requirements):
    """The folder of the environment that holds what the files name and nothing else, made where it is not there."""
    folder = environment_folder(requirements)
    stamp = folder / "complete"
    if not stamp.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with open(folder.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not stamp.exists():
                names = ", ".join(file.name for file in requirements)
                print(f"setup: making the Python environment from {names}", flush=True)
                run([sys.executable, "-m", "venv", "--clear", folder], "could not make a Python environment")
                pip = [folder / "bin" / "pip", "install", "-q", "--disable-pip-version-check"]
                for file in requirements:
                    pip += ["-r", file]
                run(pip, "could not install the Python packages")
                stamp.touch()
    return folder


def ensure(extra=()):
    ensure_packages()
    return ensure_environment(extra)
