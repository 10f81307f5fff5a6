# make builds build/slipway; make test does everything the tests need, on a fresh computer too.
.PHONY: all build demo demo-down test soak bench golden clean

all: build

build:
	@scripts/setup.sh build
	@test -e build/build.ninja || meson setup build
	@ninja -C build slipway

# A real cluster of three machines on this computer (as root); a rerun takes seconds.
DEMO = cd build/demo && ../slipway
KUBECTL = $(or $(SLIPWAY_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/slipway)/artifacts/kubernetes-1.36.3/kubectl
demo: build
	@scripts/setup.sh test
	@scripts/artifacts.sh
	@mkdir -p build/demo && cp examples/demo.yaml build/demo/cluster.yaml
	@$(DEMO) up --yes
	@$(DEMO) kubeconfig > kubeconfig
	@echo
	@$(KUBECTL) --kubeconfig build/demo/kubeconfig get nodes
	@echo
	@echo "use it:     $(KUBECTL) --kubeconfig build/demo/kubeconfig get pods -A"
	@echo "remove it:  make demo-down"

demo-down:
	@$(DEMO) down

test:
	@scripts/setup.sh test
	@tests/run.py

# What is too long for make test: large clusters, long runs of kills.
soak:
	@scripts/setup.sh test
	@tests/run.py soak

# Figures for docs/benchmarks.md.
bench: build
	@scripts/setup.sh bench
	@scripts/artifacts.sh
	@tests/bench/run.py

# Writes the expected files of the golden tests anew: read the diff.
golden: build
	@REGEN=1 tests/run.py golden

clean:
	@test ! -e build/demo/.slipway/demo/machines || { echo "the demo's machines are still there: make demo-down first" >&2; false; }
	rm -rf build build-*
