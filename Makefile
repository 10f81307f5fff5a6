# make builds build/slipway; make test does everything the tests need, on a fresh computer too.
.PHONY: all build demo test bench golden clean

all: build

build:
	@scripts/setup.sh build
	@test -e build/build.ninja || meson setup build
	@ninja -C build slipway

# A real cluster on machines of this computer.
demo: build
	@scripts/setup.sh test
	@scripts/artifacts.sh
	@tests/machines/by-hand.sh

test:
	@scripts/setup.sh test
	@tests/run.py

# Figures for docs/benchmarks.md.
bench: build
	@scripts/setup.sh test
	@scripts/artifacts.sh kubernetes
	@tests/bench/run.py

# Writes the expected files of the golden tests anew: read the diff.
golden: build
	@REGEN=1 tests/run.py golden

clean:
	rm -rf build build-*
