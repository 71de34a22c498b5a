# Every habit of the house by name. They use the `python3` on the path (or PYTHON=...), with Tenfold
# and its `test` extra installed there: `make develop` does that once.
PYTHON ?= python3
NATIVE := $(wildcard native/*/*.h native/*/*.cpp)
CMAKE ?= cmake
STRESS_SECONDS ?= 60
SOAK_MINUTES ?= 20
SECOND_RUN_PROGRAMS ?= 125
FUZZ_SECONDS ?= 3600
DEVICE ?= cuda

SMOKE := $(wildcard bench/*.py)
GRIDS ?= all

.PHONY: help develop test test-all test-tiny test-level full-size guard ptx fake-cuda device-check \
        second-runs planted lint format tidy types stubs bench smoke examples docs native tsan asan \
        fuzz model soak wheel wheels changelog clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

develop: ## install for development: Python edited in place, native code rebuilt by running it again
	$(PYTHON) -m pip install --quiet 'scikit-build-core>=0.11' 'nanobind>=3.0' cmake ninja
	$(PYTHON) -m pip install --quiet --no-build-isolation --editable '.[test]'

test: ## the tests and doctests of the installed package, a sample of each exhaustive grid
	$(PYTHON) -m pytest

test-all: ## the same with every case of every grid (GRIDS=rest: those that `make test` leaves out)
	$(PYTHON) -m pytest --grids=$(GRIDS)

test-tiny: ## the main habits in ten seconds
	$(PYTHON) -m pytest --numprocesses=0 tests/tiny

full-size: ## every form of loop at every threshold of the planner (hours); a plain test takes a choice
	TENFOLD_FULL_SIZE=all $(PYTHON) -m pytest --grids=all tests/full_size

guard: ## tests of operations and plans with each array between unmapped pages
	TENFOLD_GUARD=1 $(PYTHON) -m pytest tests/ops tests/schedule

emulated: ## engines and functions on a device whose queues are late: one test in ONE_IN, seed SEED, 1,000 random delays
	TENFOLD_DEVICE=emulated MODEL_DELAYS=1000 $(PYTHON) -m pytest tests/engine tests/transforms tests/tiny \
	    tests/features tests/ops/test_samples.py --one-in=$(ONE_IN) --seed=$(SEED) --whole="tests/engine/test_model.py tests/tiny"

fake-cuda: ## a selection of tests on the CUDA device, whose driver is the fake one of native/tests
	$(PYTHON) -m pytest tests/runtime/test_cuda_device.py

device-check: ## build, tests and figures of a device of NVIDIA in eight minutes (DEVICE=emulated: a rehearsal)
	$(PYTHON) tools/device_check.py --device $(DEVICE)

ptx: ## PTX of all kernels of threads through ptxas, for three processors (pip install nvidia-cuda-nvcc)
	TENFOLD_PTX=all $(PYTHON) -m pytest tests/integration/test_ptx.py --skips-fail

second-runs: ## random programs, again and again with other numbers, sharing, layouts and lengths
	SECOND_RUN_PROGRAMS=$(SECOND_RUN_PROGRAMS) $(PYTHON) -m pytest tests/second_runs/test_random_programs.py \
	    tests/second_runs/test_random_sessions.py tests/second_runs/test_random_loops.py

planted: ## bugs that are planted one by one: how many the tests find (PLANTS="numbers or names")
	$(PYTHON) tools/planted_bugs.py $(PLANTS)

# Of the tests of kernels those that compare values: `test-level` runs all of them, and a part of
# the rest.
KERNELS := tests/tiny tests/schedule tests/codegen/test_complex_functions.py tests/codegen/test_masked_access.py \
           tests/codegen/test_elementwise_rules.py tests/codegen/test_strided_loads.py tests/codegen/test_tiled_maps.py \
           tests/ops/test_elementwise.py tests/ops/test_elementwise_semantics.py \
           tests/ops/test_reduce.py tests/ops/test_scan.py \
           tests/runtime/test_cpu_reductions.py tests/runtime/test_symbolic_executables.py \
           tests/runtime/test_products.py
LEVEL ?= x86-64-v3
ONE_IN ?= 3
SEED ?= 0
test-level: ## tests of kernels, and one in ONE_IN of all, on a lower LEVEL=x86-64-v3, -v2 or x86-64
	TENFOLD_CPU=$(LEVEL) $(PYTHON) -m pytest --one-in=$(ONE_IN) --seed=$(SEED) --whole="$(KERNELS)"

lint: ## style, layers and sizes
	$(PYTHON) -m ruff check
	$(PYTHON) -m ruff format --check
	clang-format --dry-run -Werror $(NATIVE)
	PYTHONPATH=src lint-imports
	$(PYTHON) tools/check_size.py
	$(PYTHON) tools/check_layers.py
	$(PYTHON) tools/check_names.py
	$(PYTHON) tools/count_code.py

format: ## rewrite Python and C++ as lint wants them
	$(PYTHON) -m ruff check --fix
	$(PYTHON) -m ruff format
	clang-format -i $(NATIVE)

tidy: ## clang-tidy over the native core (slow)
	$(CMAKE) -S . -B build/tidy -DTENFOLD_TESTS=ON -DCMAKE_CXX_COMPILER=clang++
	clang-tidy -p build/tidy --quiet $(filter-out native/python/% native/tests/%,$(wildcard native/*/*.cpp))

types: ## mypy --strict
	$(PYTHON) -m mypy --strict

stubs: ## write what is generated: the .pyi files of the public names, the header of target facts
	$(PYTHON) -m tenfold.namespace.stubs src/tenfold
	$(PYTHON) tools/target_header.py

bench: ## every program in bench/
	@set -e; for program in bench/*.py; do echo "== $$program"; $(PYTHON) "$$program"; done

smoke: ## every program in bench/ at full size, once: values are compared, nothing is timed
	@set -e; for program in $(SMOKE); do echo "== $$program"; $(PYTHON) "$$program" --smoke; done

examples: ## the examples at the size they have by themselves
	cd examples && $(PYTHON) -m trees.tree_lstm
	cd examples && $(PYTHON) -m trees.training
	cd examples && $(PYTHON) -m fits.pendulum
	cd examples && $(PYTHON) -m fits.logistic
	cd examples && $(PYTHON) -m fits.gaussian_process
	cd examples && $(PYTHON) -m graphs.message_passing
	cd examples && $(PYTHON) -m per_sample.particles
	cd examples && $(PYTHON) -m per_sample.adaptive_steps

docs: ## run the tour, write the generated pages, build the site in build/docs (pip install '.[docs]')
	$(PYTHON) docs/tour.py
	$(PYTHON) docs/settings.py
	$(PYTHON) docs/absent.py
	$(PYTHON) docs/storage.py
	$(PYTHON) docs/site/build.py

native: ## the native core's own tests
	$(CMAKE) -S . -B build/native -DTENFOLD_TESTS=ON
	$(CMAKE) --build build/native --parallel 2
	ctest --test-dir build/native --output-on-failure --parallel 2

tsan: ## the same under the thread sanitizer, then STRESS_SECONDS of the stress program
	$(CMAKE) -S . -B build/tsan -DTENFOLD_TESTS=ON -DTENFOLD_SANITIZE=thread
	$(CMAKE) --build build/tsan --parallel 2
	ctest --test-dir build/tsan --output-on-failure --parallel 2
	TSAN_OPTIONS=halt_on_error=1 build/tsan/stress $(STRESS_SECONDS)

asan: ## the same under the address and undefined-behaviour sanitizers
	$(CMAKE) -S . -B build/asan -DTENFOLD_TESTS=ON -DTENFOLD_SANITIZE=address
	$(CMAKE) --build build/asan --parallel 2
	ctest --test-dir build/asan --output-on-failure --parallel 2
	build/asan/stress $(STRESS_SECONDS)

fuzz: ## 100,000 random expressions against the reference, then FUZZ_SECONDS of second runs
	$(PYTHON) -m pytest -m fuzz --grids=all --hypothesis-profile=fuzz
	$(PYTHON) tests/second_runs/fuzz.py --seconds $(FUZZ_SECONDS)
	$(PYTHON) tests/second_runs/fuzz.py --seconds $(FUZZ_SECONDS) --large
	$(PYTHON) tests/second_runs/random_sessions.py --seconds $(FUZZ_SECONDS)
	$(PYTHON) tests/second_runs/random_loops.py --seconds $(FUZZ_SECONDS)

model: ## engines against the sequential interpreter: all small graphs, 100,000 random programs
	MODEL_OPERATORS=5 MODEL_SORTS=3 MODEL_PROGRAMS=100000 $(PYTHON) -m pytest --numprocesses=0 \
	    --override-ini=faulthandler_timeout=0 tests/engine/test_model.py

soak: ## mixed work on an engine for SOAK_MINUTES: no hang, no error, flat memory
	cd bench && $(PYTHON) -m engine_work.soak --minutes $(SOAK_MINUTES)

# Of each version one is enough: the newest on the path or of pyenv.
WHEEL_PYTHONS ?= $(foreach v,3.11 3.12 3.13 3.14,$(firstword $(wildcard $(HOME)/.pyenv/versions/$(v).*/bin/python3) \
                   $(shell command -v python$(v))))
wheels: ## an sdist and manylinux_2_28 wheels of all Pythons at hand in dist/, each tried out without a compiler
	tools/build_wheels.sh $(WHEEL_PYTHONS)

wheel: ## the same of one Python
	tools/build_wheels.sh $(PYTHON)

changelog: ## what the fragments will add to CHANGELOG.md
	@for fragment in $(filter-out changelog.d/README.md,$(wildcard changelog.d/*.md)); do \
	    cat $$fragment; echo; done

clean: ## remove what was built
	rm -rf build dist
