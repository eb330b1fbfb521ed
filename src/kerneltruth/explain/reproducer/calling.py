"""A part of reproducing scripts, as source text: call the candidate as the judge did."""

CALLING = r'''def bind(entry, values):
    """Positional and named arguments: by name where the entry knows it, the others by place."""
    parameters = inspect.signature(getattr(entry, "forward", entry)).parameters
    kinds = {n: p.kind for n, p in parameters.items()}
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    named = {n: v for n, v in values.items() if kinds.get(n, several[0]) not in several}
    left = [(n, v) for n, v in values.items() if n not in named]
    for name, p in parameters.items():
        if left and name not in named and p.kind is p.POSITIONAL_OR_KEYWORD:
            if left[0][0] == "out" and name not in ("out_tensor", "output", "result"):
                continue
            if p.default is p.empty or torch.is_tensor(left[0][1]) or left[0][0] in LISTS:
                named[name] = left.pop(0)[1]
    by_place = ()
    if left and next(iter(kinds.values()), None) is several[0]:
        by_place = left.pop(0)[1]  # `rand(*size)`
    if several[1] in kinds.values():
        named.update(left)
    return by_place, named


# <model>
def model_called(kind, values):
    """What a model returns, built at the judge's seed, and given its weights where it has some.

    They go by name, else in order among equal shapes; statistics may have no place.
    """
    called = ast.literal_eval(values.pop("model.called", None) or "{}")
    values.pop("model.filled", None), values.pop("model.named", None)
    torch.manual_seed(0)
    names = {}
    # <pretrained>
    if "transformers" in sys.modules:
        names["AutoConfig"] = sys.modules["transformers"].AutoConfig
    # </pretrained>
    model = kind(*eval(values.pop("get_init_inputs()"), names))
    own = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    found = {n: values.pop(n) for n in list(values) if n.startswith("weights.")}
    weights = {n.removeprefix("weights."): w for n, w in found.items() if w is not None}
    dtype = next((v.dtype for v in (*weights.values(), *values.values()) if real(v)), None)
    plain = {n.replace(".", "_"): n for n in weights}
    same = {n: plain[n.replace(".", "_")] for n in own if n.replace(".", "_") in plain}
    places = {n: w for n, w in same.items() if wide(own[n]) == wide(weights[w])}
    for name in (n for n in weights if n not in places.values()):
        free = [n for n in own if n not in places and wide(own[n]) == wide(weights[name])]
        places |= {n: name for n in free[:1]}
    with torch.no_grad():
        for own_name, name in places.items():
            own[own_name].copy_(weights[name].reshape(own[own_name].shape))
        model = model.to(DEVICE, dtype)
        if called.get("training") is not None:
            model.train(called["training"])
        # <other_values>
        call_with_other_values(model, values.values(), {})
        # </other_values>
        returned = model(*values.values())
        updated = called.get("updated", ())
        kept = dict(model.named_buffers())
        return [returned, *(kept[n] for n in updated)] if updated else returned


def of_function(entry, values):
    """What a function gets in place of a model: inputs, weights, and what it names of the rest."""
    parameters = inspect.signature(entry).parameters
    described = {n: values.pop(n, None) for n in ("model.called", "model.filled", "model.named")}
    built, given = ast.literal_eval(values.pop("get_init_inputs()")), {}
    weights = [n for n in values if n.startswith("weights.")]
    for name, value in values.items():
        parts = name.split(".")[1:]
        for i in reversed(range(len(parts))):  # the longest end of its name that is its own
            end = ".".join(parts[i:])
            own = i == 0 or sum(w.endswith("." + end) for w in weights) == 1
            if own and (i == 0 or end.replace(".", "_") in parameters):
                name = end.replace(".", "_")
        given[name] = value
    named = zip(ast.literal_eval(described["model.named"]), built)
    return {**given, **{n: v for n, v in named if n in parameters}}


# </model>
# <other_values>
def call_with_other_values(entry, positional, named):
    """Call the entry with other values first; parameters and buffers stay as they are."""
    state = list(entry.state_dict().values()) if isinstance(entry, torch.nn.Module) else []
    before = [t.clone() for t in state]
    with torch.no_grad():
        try:
            entry(*map(other, positional), **{n: other(v) for n, v in named.items()})
        except Exception as error:  # these values are made up
            print(f"a call with other values raised {type(error).__name__}")
        for now, then in zip(state, before):
            now.copy_(then)


def other(value):
    """Tensors in reverse, and real numbers in them smaller; all else as it is."""
    if not torch.is_tensor(value):
        return value
    value = value.flip(tuple(range(value.dim())))
    return value * 0.75 if real(value) else value


# </other_values>
# <model>
def wide(tensor):
    """The dims that have more than one element."""
    return [n for n in tensor.shape if n != 1]


# </model>
# <values>
def real(value):
    return torch.is_tensor(value) and value.is_floating_point()


# </values>
def called(entry, values, placed):
    """What the entry returns."""
    # <model>
    if "get_init_inputs()" in values and inspect.isclass(entry):
        return model_called(entry, values)
    if "get_init_inputs()" in values:
        values = of_function(entry, values)
    # </model>
    # <optimizer>
    if any(n.startswith("_gradients_of_") for n in values):
        return stepped(entry, values, placed)
    # </optimizer>
    if inspect.isclass(entry):  # a model takes what its constructor knows
        own = [n for n in SCALARS if n in inspect.signature(entry).parameters]
        entry = entry(**{n: values.pop(n) for n in own}).to(DEVICE)
    # <arrays>
    values = {n: v.numpy() if torch.is_tensor(v) else v for n, v in values.items()}
    # </arrays>
    # <other_values>
    call_with_other_values(entry, *bind(entry, values))
    # </other_values>
    positional, named = bind(entry, values)
    return entry(*positional, **named)


# <optimizer>
def stepped(entry, values, placed):
    """What the entry returns; an optimizer takes a step for each gradient."""
    mark = "_gradients_of_"
    found = {n.removeprefix(mark): values.pop(n) for n in list(values) if n.startswith(mark)}
    gradients = {n: g for n, g in found.items() if g is not None and n in placed}
    owners = {n: placed[n][1].requires_grad_() for n in gradients}
    # <other_values>
    call_with_other_values(entry, *bind(entry, values))
    # </other_values>
    positional, named = bind(entry, values)
    made = entry(*positional, **named)
    if not callable(getattr(made, "step", None)):
        return made
    for step in range(max(map(len, gradients.values()), default=0)):
        for name, owner in owners.items():
            owner.grad = gradients[name][step].clone()
        made.step()
    for owner in owners.values():
        owner.requires_grad_(False)
    return None


# </optimizer>
# <gradients>
def gradients(result, leaves):
    """The gradient of each input, where those passed in at the result are 1/8 to 7/8 in turn."""
    result = result[0] if isinstance(result, (tuple, list)) else result
    passed = (torch.arange(result.numel(), device=result.device) % 7 + 1) / 8
    passed = passed.to(result.dtype).reshape(result.shape)
    found = torch.autograd.grad(result, leaves, passed, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, found)]


# </gradients>
def scalar(value):
    """An attribute's value; a dtype stands there as its name, a list within a tuple as one."""
    if isinstance(value, tuple):
        return tuple(list(v) if isinstance(v, tuple) else v for v in value)
    named = isinstance(value, str) and value.startswith("torch.")
    return getattr(torch, value.removeprefix("torch.")) if named else value


def call(entry, pattern=0):
    """Run the candidate once: its outputs, and what it did to its inputs."""
    global POISON
    POISON = pattern
    ALLOCATED.clear()
    placed = {n: lay_out(s, pattern) for n, s in TENSORS.items() if s is not None}
    values = {n: placed[n][1] if n in placed else scalar(SCALARS.get(n)) for n in ARGUMENTS}
    leaves = {n: placed[n][1].detach().requires_grad_() for n in GRADIENTS}
    values = {n: leaves.get(n, v) for n, v in values.items()}
    for name, members in LISTS.items():
        values[name] = [leaves.get(n, placed[n][1]) for n in members if n in placed]
    before = {n: (raw(buffer), raw(view)) for n, (buffer, view) in placed.items()}
    result = called(entry, values, placed)
    # <gradients>
    result = gradients(result, list(leaves.values()))
    # </gradients>
    if CUDA:
        torch.cuda.synchronize()
    outputs = list(result) if isinstance(result, (tuple, list)) else [result]
    # <arrays>
    outputs = [torch.from_numpy(numpy.ascontiguousarray(o)) for o in outputs]
    # </arrays>
    named = [spec["in_place"] for spec in EXPECTED]
    if result is None and not any(named):
        outputs = [placed[n][1] for n in WRITES]
    elif any(named):
        all_there = len(outputs) == len(EXPECTED)
        left = [o for o, n in zip(outputs, named) if not n] if all_there else outputs
        left = [] if result is None else left
        outputs = [placed[n][1] if n else left.pop(0) for n in named if n or left]
    problems = ["it wrote beyond memory that it allocated"] if overrun() else []
    for name, (buffer, view) in placed.items():
        if raw(view) != before[name][1] and name not in MAY_WRITE:
            problems.append(f"it changed its input {name}")
        elif raw(view) == before[name][1] and raw(buffer) != before[name][0]:
            problems.append(f"it wrote outside of the elements of {name}")
        for i, out in enumerate(outputs):
            if torch.is_tensor(out) and out.numel() and name not in MAY_WRITE:
                if 0 <= out.data_ptr() - buffer.data_ptr() < buffer.nbytes:
                    problems.append(f"output {i} shares memory with the input {name}")
    return outputs, problems


'''
