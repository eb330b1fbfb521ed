"""A runner without processes: its sessions answer every message, and it remembers them."""

from dataclasses import dataclass, field

from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.observation import Observation

ANSWER = Observation(ended="returned", timings={"device_s": 1e-5, "host_s": 1e-6})
GONE = Observation(ended="lost", message="it is gone")


@dataclass(eq=False)
class ScriptedSession:
    """The session of a baseline."""

    runner: "WithoutProcesses"
    candidate: Candidate
    mode: str
    paused: bool = False
    is_open: bool = True

    def request(self, message, *, sizes=None, deadline_s=30.0):
        return self.runner.messages(message) if self.is_open else GONE

    def load_instead(self, candidate):
        self.candidate = candidate

    def restart(self):
        self.is_open = True

    def close(self, *, wait=True):
        self.is_open = False
        self.runner.waited.append(wait)

    def pause(self):
        self.paused = True

    def resume(self):
        self.paused = False


@dataclass
class WithoutProcesses:
    """Opens such sessions.

    Attributes:
        opened: for which candidates.
        waited: whether the end of each was waited for.
        messages: answers for their children, and may take its time.
    """

    device: str = "cpu"
    opened: list = field(default_factory=list)
    waited: list = field(default_factory=list)
    sessions: list = field(default_factory=list)
    messages: object = lambda message: ANSWER

    def open(self, candidate, mode="run", **_):
        self.opened.append(candidate)
        self.sessions.append(ScriptedSession(self, candidate, mode))
        return self.sessions[-1]

    @property
    def left(self):
        """How many sessions are open."""
        return sum(session.is_open for session in self.sessions)


@dataclass
class ScriptedMemory:
    """The memory of a device, in bytes."""

    total: int = 0
    free: int = 0

    def release(self):
        """Keep nothing."""

    def finish(self):
        """Wait for nothing."""
