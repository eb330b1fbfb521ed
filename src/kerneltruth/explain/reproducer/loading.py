"""A part of reproducing scripts, as source text: load the candidate as the judge did."""

LOADING = r'''# <autotune>
def fixed_configuration(configs, *_, **__):
    """In place of triton.autotune: the configuration that was judged, without benchmarking."""

    class Fixed:
        def __init__(self, kernel):
            self.kernel, self.config = kernel, configs[CONFIG % len(configs)]

        def __getattr__(self, name):
            return getattr(self.kernel, name)

        def __getitem__(self, grid):
            return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)

        def run(self, *args, grid, warmup=False, **kwargs):
            if self.config.pre_hook is not None:
                names = dict(zip(self.kernel.arg_names, args))
                self.config.pre_hook({**names, **kwargs, **self.config.all_kwargs()})
            return self.kernel[grid](*args, **{**kwargs, **self.config.all_kwargs()})

    return Fixed


# </autotune>
# <interpreter>
def mend_interpreter():
    """Triton before 3.7 cannot use a loaded number as a loop bound with NumPy 2.4 or newer."""
    import triton.runtime.interpreter as interpreter

    patch = getattr(interpreter, "_patch_lang_tensor", None)
    if patch is None:
        return

    def mended(tensor, *rest):
        patch(tensor, *rest)
        tensor.__index__ = lambda self: int(self.handle.data.item())

    interpreter._patch_lang_tensor = mended


# </interpreter>
# <pretrained>
def offer_small_models():
    """In place of pretrained models of these names: small ones, with weights that they draw."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import transformers

    def config_dict(kind, name, **settings):
        return copy.deepcopy(MODELS[name]), {}

    def from_pretrained(kind, name, *args, config=None, **settings):
        config = copy.deepcopy(config or transformers.AutoConfig.from_pretrained(name))
        known = ("attn_implementation", "dtype", "torch_dtype")
        given = {n: settings[n] for n in known if settings.get(n) not in (None, "auto")}
        return kind._from_config(config, *args, **given).eval()

    transformers.PretrainedConfig.get_config_dict = classmethod(config_dict)
    transformers.PreTrainedModel.from_pretrained = classmethod(from_pretrained)


# </pretrained>
def load(folder):
    """The candidate's entry, from a file of its own, so that Triton finds the source."""
    for owner, name in (
        (torch, "empty"),
        (torch, "empty_like"),
        (torch, "empty_strided"),
        (torch.Tensor, "new_empty"),
        # <arrays>
        (numpy, "empty"),
        (numpy, "empty_like"),
        # </arrays>
    ):
        setattr(owner, name, poisoned(getattr(owner, name)))
    # <autotune>
    import triton

    triton.autotune = fixed_configuration
    # </autotune>
    # <interpreter>
    if not CUDA:
        mend_interpreter()
    # </interpreter>
    # <pretrained>
    offer_small_models()
    # </pretrained>
    path = os.path.join(folder, "candidate.py")
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(CANDIDATE)
    spec = importlib.util.spec_from_file_location("candidate", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["candidate"] = module
    spec.loader.exec_module(module)
    return getattr(module, ENTRY)


'''
