"""A machine that has nothing but a minimal Debian: a root of its own for whoever begins with a release.

Programs and libraries are this machine's, read-only; everything else (`/root`, `/usr/local`, `/etc`, `/tmp`) is the
new machine's own. The network is shared: what runs there reaches this machine on loopback.
"""

import functools
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
HOME = "/root"
OWN = ("dev", "etc", "proc", "root", "tmp")
SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
ETC = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\n",
    "shadow": "root:*:20000:0:99999:7:::\n",
    "group": "root:x:0:\n",
    "gshadow": "root:*::\n",
    "hosts": "127.0.0.1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
# As this machine has them. `alternatives` is half of how Debian finds programs in `/usr`.
ETC_SHARED = ("alternatives", "ssl")


class Account:
    """The next best: an empty home, and an environment that knows nothing of this one, in this machine's root."""

    # What the programs are installed below.
    prefix = "/usr/local"

    def __init__(self, root):
        self.root = Path(root)
        self.home = self.root / HOME.lstrip("/")
        self.home.mkdir(parents=True)

    def place(self, path):
        """What its programs call a path of it."""
        return f"{self.root}{path}"

    def bring(self, source, path):
        """Puts there what would be downloaded."""
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(source)

    def argv(self, command, env=None):
        """The command line by which a shell there runs `command`, in its home."""
        path = f"{self.place(self.prefix)}/bin:{PATH}"
        env = {"PATH": path, "HOME": self.place(HOME), "LC_ALL": "C", **(env or {})}
        named = (f"{name}={value}" for name, value in env.items())
        return ["env", "-i", *named, "sh", "-c", f"cd && exec {command}"]


class Machine(Account):
    """A machine in a folder, which is its root."""

    def __init__(self, root):
        super().__init__(root)
        for name in OWN:
            (self.root / name).mkdir(exist_ok=True)
        for name, text in ETC.items():
            (self.root / "etc" / name).write_text(text)
        self._mounts = []
        self._share("/usr", "/usr")
        # Beside a system's `/usr`, what this machine was given there.
        local = self.root / "local"
        local.mkdir()
        self._mounts.append(f"mount --bind {shlex.quote(str(local))} {self._at('/usr/local')}")
        for name in SYSTEM:
            path = Path("/") / name
            if path.is_symlink():
                (self.root / name).symlink_to(os.readlink(path))
            elif path.is_dir():
                self._share(path, f"/{name}")
        for name in ETC_SHARED:
            if (Path("/etc") / name).is_dir():
                self._share(f"/etc/{name}", f"/etc/{name}")

    def place(self, path):
        return path

    def _at(self, path):
        """A path of it, as this machine has it, for a shell."""
        return shlex.quote(f"{self.root}{path}")

    def _share(self, source, path):
        (self.root / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
        at = self._at(path)
        self._mounts.append(f"mount --bind {shlex.quote(str(source))} {at}; mount -o remount,bind,ro {at}")

    def bring(self, source, path):
        self._share(source, path)

    def argv(self, command, env=None):
        devices = f"mount --rbind /dev {self._at('/dev')}; mount -t proc proc {self._at('/proc')}"
        chroot = shlex.join(["chroot", str(self.root), *super().argv(command, env)])
        script = "; ".join([*self._mounts, devices, f"exec {chroot}"])
        # Who is not root may be it in a namespace.
        user = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
        # Its mounts and processes end with the command.
        return ["unshare", *user, "--mount", "--pid", "--fork", "--kill-child", "--", "sh", "-ec", script]


@functools.cache
def why_none():
    """Why no machine can be made here; nothing when one can."""
    folder = tempfile.mkdtemp(prefix="surety-machine-")
    try:
        done = subprocess.run(Machine(folder).argv("true"), capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    finally:
        shutil.rmtree(folder)
    return (done.stderr.strip() or f"unshare ended with {done.returncode}") if done.returncode else None
