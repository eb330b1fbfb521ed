"""A candidate that tries to reach everything but its own call, and says what it could."""

SOURCE = """
import ctypes, json, os, signal, socket, struct, subprocess, sys

libc = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"


def system(x86, arm, *arguments):
    if libc.syscall(x86 if X86 else arm, *arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def program(code):
    subprocess.run([sys.executable, "-S", "-c", code], check=True, capture_output=True)


def f(judge, secret, rival, package, abstract):
    folder = os.path.dirname(secret)
    local = (ctypes.c_char * 8)()
    remote = struct.pack("@PN", ctypes.addressof(local), 8)

    def connect_abstract():
        with socket.socket(socket.AF_UNIX) as s:
            s.connect("\\0" + abstract)

    event = ctypes.create_string_buffer(struct.pack("<II", 1, 112), 112)
    attacks = {
        "read": lambda: open(secret).close(),
        "read elsewhere": lambda: program(f"open({secret!r})"),
        "append": lambda: open(secret, "a").close(),
        "truncate": lambda: os.truncate(secret, 1),
        "create": lambda: open(os.path.join(folder, "new"), "w").close(),
        "list": lambda: os.listdir(folder),
        "link": lambda: os.link(secret, "linked"),
        "through a link": lambda: (os.symlink(secret, "pointing"), open("pointing").close()),
        "rename": lambda: os.rename(secret, secret + "2"),
        "rival": lambda: open(os.path.join(rival, "answers"), "w").close(),
        "oracle": lambda: open(os.path.join(package, "oracle", "judge.py")).close(),
        "corpus": lambda: open(os.path.join(package, "corpus", "entry.py")).close(),
        "tasks": lambda: __import__("kerneltruth.tasks.registry"),
        "change the judge": lambda: open(os.path.join(package, "runner", "wire.py"), "a").close(),
        "command line": lambda: open(f"/proc/{judge}/cmdline").close(),
        "environment": lambda: open(f"/proc/{judge}/environ").read(),
        "memory": lambda: open(f"/proc/{judge}/mem", "rb+").close(),
        "descriptors": lambda: os.listdir(f"/proc/{judge}/fd"),
        "shared memory": lambda: open("/dev/shm/kerneltruth-test", "w").close(),
        "segment": lambda: system(29, 194, 0, 64, 0o1600),
        "queue": lambda: system(68, 186, 0, 0o1600),
        "inet": lambda: socket.socket(socket.AF_INET).close(),
        "inet6": lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).close(),
        "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close(),
        "abstract": connect_abstract,
        "datagrams": lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].close(),
        "signal": lambda: os.kill(judge, 0),
        "signal to the parent": lambda: os.kill(os.getppid() or 1, 0),
        "signal elsewhere": lambda: program(f"import os; os.kill({judge}, 0)"),
        "ptrace": lambda: system(101, 117, 0x4206, judge, 0, 0),
        "process_vm_readv": lambda: system(310, 270, judge, remote, 1, remote, 1, 0),
        "pidfd_getfd": lambda: system(438, 438, os.pidfd_open(judge), 0, 0),
        "affinity": lambda: os.sched_setaffinity(judge, os.sched_getaffinity(judge)),
        "priority": lambda: os.setpriority(os.PRIO_PROCESS, judge, 0),
        "user namespace": lambda: system(272, 97, 0x10000000),
        "mount namespace": lambda: system(272, 97, 0x20000),
        "mount": lambda: system(165, 40, b"none", b"/tmp", b"tmpfs", 0, None),
        "io_uring": lambda: system(425, 425, 1, ctypes.create_string_buffer(256)),
        "bpf": lambda: system(321, 280, 0, ctypes.create_string_buffer(128), 128),
        "keyctl": lambda: system(250, 219, 0, -3, 0),
        "userfaultfd": lambda: system(323, 282, 1),
        "perf": lambda: system(298, 241, event, 0, -1, -1, 0),
        "clone3": lambda: system(435, 435, None, 0),
    }
    done, refused = [], {}
    for name, attack in attacks.items():
        try:
            attack()
            done.append(name)
        except (OSError, ImportError, subprocess.CalledProcessError) as error:
            refused[name] = repr(error)
    print(json.dumps([done, refused]))
"""
