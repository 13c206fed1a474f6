"""Asks the code of vLLM, SGLang or ModelExpress what it makes of a map of GPUs and NICs.

ask.py FRAMEWORK SOURCES reads questions from standard input, a JSON object a line:

    {"root": "/tree", "file": "/map.json", "gpus": ["0000:18:00.0"], "env": {"NAME": "VALUE"}}

root becomes the root directory, with the machine's /sys; file lies in it. For each question it
prints an object with what the framework says of each GPU, by its number, and where it stops:

    {"0": {"UCX_NET_DEVICES": "mlx5_0:1"}, "1": {"error": "ValueError: ..."}}

The framework's files are loaded from SOURCES as they are. What they import, other than Python's
own library and each other, is replaced by objects that do nothing.
"""

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import re
import sys
import types
from unittest import mock

# Loaded before the root directory changes.
import encodings.idna  # noqa: F401
import pathlib  # noqa: F401
import traceback  # noqa: F401


class Nothing(types.ModuleType):
    """A module whose every name is an object that accepts all calls."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return mock.MagicMock()


class Replace(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module that is not of Python's own library."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.stdlib_module_names:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Nothing(spec.name)

    def exec_module(self, module):
        pass


def load(sources, name):
    """Loads a file of the framework as the module that its name says."""
    path = os.path.join(sources, name)
    if not os.path.isfile(path):
        sys.exit(f"ask.py: there is no {path}; name the directory of a checkout")
    module_name = name.removeprefix("python/").removesuffix(".py").replace("/", ".")
    spec = importlib.util.spec_from_file_location(module_name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[module_name] = module
    return module


class Environment:
    """The variables that vLLM declares; all of them are texts here."""

    def __getattr__(self, name):
        return os.environ.get(name, "")


def vllm(sources):
    """set_worker_net_device sets variables in the environment of each worker."""
    module = load(sources, "vllm/v1/executor/vllm_net_devices.py")

    def ask(question, rank):
        gpus = question["gpus"]
        module.envs = Environment()
        module.current_platform = types.SimpleNamespace(
            # As NVML writes them: 00000000:3B:00.0.
            get_all_gpu_pci_bus_ids=lambda: {i: f"{gpu.rjust(16, '0').upper()}" for i, gpu in enumerate(gpus)},
            device_id_to_physical_device_id=lambda i: i,
        )
        parallel = types.SimpleNamespace(
            distributed_executor_backend="mp", data_parallel_backend="mp", nnodes_within_dp=1,
            data_parallel_rank_local=0, data_parallel_index=0,
            pipeline_parallel_size=1, tensor_parallel_size=len(gpus),
        )
        before = dict(os.environ)
        module.set_worker_net_device(rank, types.SimpleNamespace(parallel_config=parallel))
        return {name: value for name, value in sorted(os.environ.items()) if before.get(name) != value}

    return ask


def function(sources, name, engine):
    """Takes one function out of whichever file defines it: some of these files do not load
    without all of the framework. Its globals are the functions beside it, and those of engine."""
    for directory, _, files in os.walk(os.path.join(sources, "python/sglang/srt")):
        for file in sorted(files):
            path = os.path.join(directory, file)
            if not file.endswith(".py"):
                continue
            with open(path, encoding="utf-8") as f:
                text = f.read()
            if not re.search(rf"^\s*def {name}\(", text, re.M):
                continue
            tree = ast.parse(text)
            named = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
            space = dict(vars(engine))
            beside = [n for n in tree.body if isinstance(n, ast.FunctionDef)]
            for f in [named[name], *beside]:
                f.decorator_list, f.returns = [], None
                for argument in f.args.args:
                    argument.annotation = None
            found = named[name]
            exec(compile(ast.Module([*beside, found], []), path, "exec"), space)
            return space[name], len(found.args.args)
    return None, 0


def sglang(sources):
    """The server checks the option with validate_ib_devices, where it has that function, and each
    worker takes its devices from the result with get_ib_devices_for_gpu."""
    engine = load(sources, "python/sglang/srt/distributed/device_communicators/mooncake_transfer_engine.py")
    for name in "Any", "Dict", "List", "Optional", "Union":
        vars(engine).setdefault(name, getattr(__import__("typing"), name))
    validate, arguments = function(sources, "validate_ib_devices", engine)
    if validate is None:
        validate, arguments = function(sources, "_validate_ib_devices", engine)

    def ask(question, rank):
        option = question["file"]
        if validate is not None:
            option = validate(*[None] * (arguments - 1), option)
        return {"devices": engine.get_ib_devices_for_gpu(option, rank)}

    return ask


def modelexpress(sources):
    """_resolve_nic_pin gives what each worker sets as UCX_NET_DEVICES."""
    module = load(sources, "modelexpress_client/python/modelexpress/ucx_utils.py")

    def ask(question, rank):
        module.envs = Environment()
        return {"devices": module._resolve_nic_pin(rank)}

    return ask


def answer(ask, question):
    """Asks in a process of its own for each GPU: its root and environment change."""
    said = {}
    for rank in range(len(question["gpus"])):
        out, into = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.chroot(question["root"])
                os.chdir("/")
                os.environ.clear()
                os.environ.update(question.get("env") or {})
                text = ask(question, rank)
            except Exception as e:
                text = {"error": f"{type(e).__name__}: {e}"}
            os.write(into, json.dumps(text).encode())
            os._exit(0)
        os.close(into)
        with os.fdopen(out) as f:
            said[str(rank)] = json.load(f)
        os.waitpid(child, 0)
    return said


ASK = {"vllm": vllm, "sglang": sglang, "modelexpress": modelexpress}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ASK:
        sys.exit(f"usage: ask.py {'|'.join(ASK)} SOURCES < QUESTIONS")
    if os.geteuid() != 0:
        sys.exit("ask.py: it needs root, to make the tree of a machine its root directory (unshare -r is enough)")
    sys.meta_path.insert(0, Replace())
    ask = ASK[sys.argv[1]](sys.argv[2])
    for line in sys.stdin:
        print(json.dumps(answer(ask, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
