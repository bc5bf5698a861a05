"""Runs the services of a compose file as processes: the same commands, in the order that the file says.

A container is a home of its own, a volume a folder, a mounted file or secret a file of another name. The network is
that of whoever calls this: services have that of their machine.
"""

import functools
import json
import os
import subprocess
from pathlib import Path

import support
from devnet_lib import wait
from devnet_lib.processes import Supervisor

# What an image runs unless its service says otherwise, and where it keeps data (docker/Dockerfile).
PROGRAMS = {"node": "surety-node", "worker": "surety"}
DATA = "/home/surety/.local/share"
# Nodes compile their runtime first, and other networks begin beside them.
READY_SECONDS = 300
# For a look at how a service is, before another one.
LOOK_SECONDS = 60


@functools.cache
def read(*names):
    """Compose files of the checkout, each over those before it, as docker-compose reads them."""
    files = [word for name in names for word in ("-f", support.REPO / "docker" / name)]
    argv = ["docker-compose", *files, "config"]
    config = subprocess.run([*argv, "--format", "json"], check=False, capture_output=True, text=True).stdout
    if config.startswith("{"):
        return json.loads(config)
    # Debian 12 has one that writes YAML alone, and a Python that reads it; that of the tests may not.
    config = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    to_json = "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)"
    argv = ["/usr/bin/python3", "-c", to_json]
    return json.loads(subprocess.run(argv, input=config, check=True, capture_output=True, text=True).stdout)


def mounted(volume):
    """What a volume of a service is of, and where it is in the container."""
    if isinstance(volume, dict):
        return volume["source"], volume["target"]
    source, target, *_ = volume.split(":")
    return source, target


class Stack:
    """The services of a file. `files` are those that it mounts or has as secrets, by their names there."""

    def __init__(self, name, folder, programs, files=None):
        config = read(name)
        self.services, self.folder, self.programs = config["services"], Path(folder), programs
        logs = self.folder / "logs"
        logs.mkdir(parents=True)
        self.supervisor = Supervisor(logs)
        self._places = {place: str(path) for place, path in (files or {}).items()}
        self._running = {}

    def up(self):
        """Starts all services, each when what it depends on is as the file says."""
        waiting = dict(self.services)
        while waiting:
            name = next(name for name in waiting if not waiting.keys() & waiting[name].get("depends_on", {}).keys())
            for other, how in waiting.pop(name).get("depends_on", {}).items():
                self._wait(other, how["condition"])
            self.start(name)

    def start(self, name):
        """Starts a service, for the first time or again."""
        self._running[name] = self.supervisor.start(name, self._argv(name), self._env(name))

    def stop(self):
        """Ends all of them."""
        self.supervisor.stop()

    def _wait(self, name, condition):
        if condition == "service_healthy":
            self.wait_until_healthy(name)
        elif condition == "service_completed_successfully":
            self.wait_for_end(name)
        else:
            raise AssertionError(f"{name} is waited for until {condition}, which nobody does here")

    def wait_until_healthy(self, name):
        """Waits until a service's health check says that it is."""
        test = self.services[name]["healthcheck"]["test"]
        assert test[0] == "CMD", test
        argv = [self._own(word) for word in test[1:]]
        env = {**os.environ, **self._env(name)}

        def healthy():
            try:
                done = subprocess.run(argv, env=env, capture_output=True, check=False, timeout=LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                return False
            return done.returncode == 0

        wait.until(f"{name} to be healthy", healthy, READY_SECONDS, self.supervisor.check)

    def wait_for_end(self, name):
        """Waits until a service has done what it is for."""
        process = self._running.pop(name)
        self.supervisor.forget(process)
        try:
            if not process.wait(READY_SECONDS):
                raise AssertionError(f"{name} does not end:\n{process.tail()}")
        finally:
            process.stop()
        assert process.returncode() == 0, f"{name} ended with {process.returncode()}:\n{process.tail()}"

    def log(self, name):
        """What a service has said."""
        return (self.supervisor.log_dir / f"{name}.log").read_text()

    def home(self, name):
        """Where a service's container has its home; its volume is what it keeps."""
        home = self.folder / name
        share = home / ".local" / "share"
        if not home.exists():
            share.parent.mkdir(parents=True)
            volumes = [mounted(volume) for volume in self.services[name]["volumes"]]
            [volume] = [source for source, target in volumes if target == DATA]
            share.symlink_to(self.volume(volume))
        return home

    def volume(self, name):
        """The folder that is a volume."""
        path = self.folder / "volumes" / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def _env(self, name):
        return {"HOME": str(self.home(name)), "PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}"}

    def _argv(self, name):
        service = self.services[name]
        entrypoint = service.get("entrypoint") or [PROGRAMS[service["build"]["target"]]]
        return [self._own(word) for word in entrypoint + (service.get("command") or [])]

    def _own(self, word):
        """A word of a command as a container sees it, with this machine's names of mounted files."""
        word = word.replace("$$", "$")
        for place, path in self._places.items():
            word = word.replace(place, path)
        return word
