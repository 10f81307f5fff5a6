# make builds build/slipway; make test does everything the tests need, on a fresh computer too.
.PHONY: all build demo demo-down test soak bench golden clean

all: build

build:
	@scripts/setup.sh build
	@test -e build/build.ninja || meson setup build
	@ninja -C build slipway

# A real cluster of three machines on this computer (as root), or of what DEMO_YAML=FILE says; a rerun takes seconds.
DEMO_YAML = examples/demo.yaml
DEMO = cd build/demo && ../slipway
KUBECTL = build/demo/kubectl --kubeconfig build/demo/kubeconfig
demo:
	@echo "demo: makes the cluster of $(DEMO_YAML) with machines on this computer. What is there already is kept; make demo again goes on where it stopped."
	@echo "demo: 1. packages that it needs (some minutes, once)  2. slipway itself (a minute, once)"
	@echo "demo: 3. Kubernetes' programs (once): downloaded, or built from Go modules where upstream cannot be reached (about a quarter of an hour on two cores; it says how long)"
	@echo "demo: 4. the cluster (a minute or two)"
	@scripts/setup.sh demo
	@$(MAKE) --no-print-directory build
	@mkdir -p build/demo && cp $(DEMO_YAML) build/demo/cluster.yaml
	@$(DEMO) up --yes
	@$(DEMO) kubeconfig > kubeconfig
	@$(DEMO) programs -d . kubectl
	@echo
	@$(KUBECTL) get nodes
	@echo
	@echo "use it:     $(KUBECTL) get pods -A"
	@echo "remove it:  make demo-down"

demo-down:
	@if [ -d build/demo ]; then $(DEMO) down; else echo "there is no demo"; fi

# In build-test, which is its own: it does not matter what was built before. STAGES="unit golden": some of it.
test:
	@scripts/setup.sh test
	@tests/run.py $(STAGES)

# What is too long for make test: large clusters, long runs of kills.
soak:
	@scripts/setup.sh test
	@scripts/setup.sh openstack
	@scripts/setup.sh vm
	@tests/run.py soak

# Figures for docs/benchmarks.md.
bench:
	@scripts/setup.sh bench
	@$(MAKE) --no-print-directory build
	@build/slipway programs common previous terraform >/dev/null
	@tests/bench/run.py

# Writes the expected files of the golden tests anew: read the diff.
golden:
	@scripts/setup.sh test
	@REGEN=1 tests/run.py golden

clean:
	@test ! -e build/demo/.slipway/demo/machines || { echo "the demo's machines are still there: make demo-down first" >&2; false; }
	rm -rf build build-*
