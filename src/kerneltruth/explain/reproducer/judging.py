"""The end of reproducing scripts, as source text: judge the call's results, and report them."""

JUDGING = r'''def differing(out, spec):
    """Which elements are wrong, and the float64 results, got and expected."""
    expected, got = tensor(spec).double(), out.detach().cpu().double()
    rounded = tensor(spec).to(out.dtype).double()
    if spec["bound"] is None:
        same = (got == rounded) | (got.isnan() & rounded.isnan())
        return ~same, got, expected
    bound = spec["bound"]
    if isinstance(bound, dict):
        bound = tensor(bound)
    bound = torch.as_tensor(bound, dtype=torch.float64).expand(expected.shape)
    parity = got.isnan() != rounded.isnan()
    infinite = (got.isinf() | rounded.isinf()) & ~(got.isnan() & rounded.isnan())
    parity |= infinite & (got != rounded)
    finite = got.isfinite() & expected.isfinite() & rounded.isfinite()
    return (finite & ((got - expected).abs() > bound)) | (parity & ~bound.isinf()), got, expected


def check(outputs):
    """What is wrong with the outputs, one line each."""
    if len(outputs) != len(EXPECTED):
        return [f"it returned {len(outputs)} outputs; expected {len(EXPECTED)}"]
    problems = []
    for i, (out, spec) in enumerate(zip(outputs, EXPECTED)):
        if not torch.is_tensor(out):
            problems.append(f"output {i} is a {type(out).__name__}; expected a tensor")
            continue
        if out.dtype != getattr(torch, spec["output_dtype"]):
            problems.append(f"output {i} is {out.dtype}; expected torch.{spec['output_dtype']}")
            continue
        # <complex>
        if out.is_complex():
            out = torch.view_as_real(out.resolve_conj())
        # </complex>
        if tuple(out.shape) != tuple(spec["shape"]):
            problems.append(f"output {i} has shape {tuple(out.shape)}; expected {spec['shape']}")
            continue
        if not spec["judged"]:
            continue
        wrong, got, expected = differing(out, spec)
        if not wrong.any():
            continue
        error = torch.where(wrong, (got - expected).abs().nan_to_num(math.inf), -1.0)
        worst = torch.unravel_index(error.reshape(-1).argmax(), error.shape)
        index = tuple(int(k) for k in worst)
        problems.append(f"output {i}: {int(wrong.sum())} of {wrong.numel()} elements are wrong")
        problems.append(f"  worst element: {list(index)}")
        problems.append(f"  expected: {float(expected[index])!r}")
        problems.append(f"  got:      {float(got[index])!r}")
    return problems


# <repeat>
def repeat(entry, first):
    """For a fault of the surroundings or of timing: whether the result depends on them."""
    before = [raw(o) for o in first]
    for _ in range(20 if KIND in ("nondeterministic", "other_bits") else 0):
        if [raw(o) for o in call(entry)[0]] != before:
            return ["the same call gives different results"]
    if KIND in ("uninitialized", "out_of_bounds"):
        if [raw(o) for o in call(entry, pattern=1)[0]] != before:
            return ["the result changes with memory that the kernel should not read"]
    return []


# </repeat>
def silent():
    """Why a run that shows nothing wrong does not mean that the kernel is right, or None."""
    if not SURE:
        return f"nothing wrong was seen, but this script alone cannot rule out {KIND}"
    if FOUND_ON != "cpu" and DEVICE == "cpu":
        return f"it was found on {FOUND_ON}, and nothing wrong shows on the CPU"
    # <interpreter>
    if DEVICE == "cpu" and hashlib.sha256(CANDIDATE.encode()).hexdigest() == AS_FOUND:
        return "the kernel is as it was found; Triton's interpreter differs from a GPU: use one"
    # </interpreter>
    if not all(spec["judged"] for spec in EXPECTED):
        return "only kerneltruth can judge what it returned: replay the finding"
    return None


def said(error):
    """An exception in words that can be printed."""
    try:
        text = f"{type(error).__name__}: {error}"
    except BaseException:
        text = f"{type(error).__name__}, which has no text"
    return text.encode("utf-8", "backslashreplace").decode()


def main(folder):
    print(f"case: {CASE}")
    print(f"torch {torch.__version__} on {torch.cuda.get_device_name() if CUDA else 'the CPU'}")
    if not CUDA and any(s and s["dtype"] in INEXACT for s in TENSORS.values()):
        print("note: Triton's interpreter computes this dtype wrongly by itself; use a GPU")
    for line in NOTES:
        print(f"note: {line}")
    try:
        entry = load(folder)
        outputs, problems = call(entry)
        problems += check(outputs)
        # <repeat>
        problems += repeat(entry, outputs)
        # </repeat>
    except BaseException as error:
        traceback.print_exc()
        if not CUDA and KIND not in ("runtime_error", "compile_error", "crash", "timeout"):
            print(f"NOT JUDGED: it cannot run without a GPU: {said(error)}")
            return 2
        problems = [f"it raised {said(error)}"]
    for line in problems:
        print(line)
    if not problems and silent():
        print(f"NOT JUDGED: {silent()}")
        return 2
    print("WRONG" if problems else "RIGHT")
    return 1 if problems else 0


# <child>
def in_a_child(folder):
    """For a kernel that dies or hangs: run it apart, and say how it ended."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(DEADLINE_S)
        code = main(folder)
        sys.stdout.flush()
        os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        late = number == signal.SIGALRM
        print(f"it did not end within {DEADLINE_S} s" if late else f"it died by signal {number}")
        print("WRONG")
        return 1
    return os.WEXITSTATUS(status)


# </child>
if __name__ == "__main__":
    run = main
    # <child>
    run = in_a_child
    # </child>
    with tempfile.TemporaryDirectory(prefix="candidate_") as folder:
        code = run(folder)
    sys.exit(code)
'''
