# A front end for Meson. `make help` lists the targets.
B       ?= build
SETUP   ?= --buildtype=release -Ddebug=true
FUZZ    ?= all
SECONDS ?= 60

SANE  := --buildtype=debugoptimized -Db_lundef=false
TEST  := meson test --no-rebuild --print-errorlogs
CCACHE := $(shell command -v ccache)
# Meson uses ccache for the default compiler, but not for a compiler given in CC.
CLANG  := $(if $(CCACHE),ccache clang-14,clang-14)
clang   = tools/configure build-$(1) $(2) && ninja -C build-$(1) $(3)

#:                build the program, build/cotenant (optimised, with debug information)
all: deps ; @tools/configure $(B) $(SETUP) && ninja -C $(B) cotenant

#: demo           serves three tenants beside a noisy neighbour under two policies; then shows other commands
demo: all ; @tools/demo $(B)

#: tests          build the program and its tests
tests: deps-test ; @tools/configure $(B) $(SETUP) && ninja -C $(B) tests

#: test           run every test, the long ones shortened
test: tests ; @$(TEST) -C $(B)

#: test-all       run every test, the long ones in full
test-all: tests ; @COTENANT_LONG=1 $(TEST) -C $(B) -t 4

#: test-kube      tests against a real Kubernetes API server, built once from Debian's source; ARGS="SCRIPT.py" selects
test-kube: all deps-kube ; @tools/test-kube $(B) $(ARGS)

#: check          format, layers, names, headers, banned calls, clang with -Werror, cppcheck, clang-tidy
check: deps-dev ; @tools/configure build-clang --buildtype=plain && tools/check build-clang

#: check-all      the same, with clang's path-sensitive analyser on all files
check-all: deps-dev ; @tools/configure build-clang --buildtype=plain && TIDY=all tools/check build-clang

#: asan           every test under the address and undefined behaviour sanitizers
asan: deps-dev ; @$(call clang,asan,$(SANE) -Db_sanitize=address$(comma)undefined,tests) && $(TEST) -C build-asan -t 5

#: tsan           the tests that start threads, under the thread sanitizer
tsan: deps-dev ; @$(call clang,tsan,$(SANE) -Db_sanitize=thread,threaded) && $(TEST) -C build-tsan -t 5 --suite threads

#: fuzz           fuzz every target, or FUZZ=name alone, for SECONDS=60 each
fuzz: deps-dev ; @$(call clang,fuzz,$(SANE) -Db_sanitize=address$(comma)undefined -Dfuzz=true,all) && tools/fuzz build-fuzz '$(FUZZ)' $(SECONDS)

check check-all asan tsan fuzz: export CC = $(CLANG)

#: benches        build the benchmarks
benches: deps ; @tools/configure $(B) $(SETUP) && ninja -C $(B) benches

#: bench          run every benchmark
bench: benches ; @tools/bench $(B)

#: bench-ort      latency against ONNX Runtime; MODELS="FILE.onnx ..." adds files, ONLY="NAME ..." selects networks, ONLY=int8 quantised ones, ONLY=fp16 float16
bench-ort: benches ; @MODELS='$(MODELS)' ONLY='$(ONLY)' ORT='$(ORT)' tools/bench-ort $(B) $(ARGS)

#: bench-decoder  tokens per second of decoders with caches, against ONNX Runtime
bench-decoder: benches ; @ORT='$(ORT)' tools/bench-decoder $(B) $(ARGS)

#: bench-dnnl     convolutions and products by shape against oneDNN, one thread; ARGS="--quick resnet50" selects
bench-dnnl: deps-dev benches ; @OMP_NUM_THREADS=1 $(B)/bench_dnnl $(ARGS)

#: bench-tenants  several tenants on one machine: request rate in time, against ONNX Runtime; MIXES="light medium modern"
bench-tenants: benches ; @MIXES='$(MIXES)' ORT='$(ORT)' tools/bench-tenants $(B) $(ARGS)

#: bench-serve    overhead of serving over computing, and small requests per second on one core
bench-serve: benches ; @tools/bench-serve $(B)

#: bench-tiny     requests per second of a tiny model: the default against hand-set cores, alone and beside CPU hogs
bench-tiny: all ; @COTENANT='$(abspath $(B))/cotenant' /usr/bin/python3 bench/tiny_models.py $(ARGS)

#: bench-noisy    two tenants with targets beside one that overloads the server, by policy: requests in time
bench-noisy: benches ; @tools/bench-noisy $(B) $(POLICIES)

#: bench-overload three times a server's capacity, for a minute: goodput against its peak; ARGS="--seconds 60"
bench-overload: benches ; @tools/bench-overload $(B) $(ARGS)

#: bench-tune     latency over time of a server that tunes its models while it serves; ARGS="--seconds 120 --load 0.2"
bench-tune: all ; @tools/bench-tune $(B) $(ARGS)

#: bench-attacks  a tenant's latency while the clients of another attack, by attack; BASELINE=PROGRAM compares two
bench-attacks: all ; @BASELINE='$(BASELINE)' tools/bench-attacks $(B) $(ARGS)

#: bench-open-shapes  latency and memory of new and known lengths and image sizes; BASELINE=PROGRAM compares two
bench-open-shapes: benches ; @BASELINE='$(BASELINE)' tools/bench-open-shapes $(B) $(ARGS)

#: soak           load, reloads, unloads and cancelled requests for MINUTES=10: the server's memory must not grow
soak: all ; @MINUTES='$(MINUTES)' tools/soak $(B)

#: debug          build without optimisation, to build-debug
debug: ; @$(MAKE) -s all B=build-debug SETUP=--buildtype=debug

#: install        install to usr/local, or to usr/local below DESTDIR=
install: all ; @DESTDIR='$(if $(DESTDIR),$(abspath $(DESTDIR)))' meson install -C $(B) --no-rebuild

#: format         format the source with clang-format
format: deps-dev ; @tools/sources '*.[ch]' src tests bench | xargs clang-format-14 -i

#: clean          remove every build folder
clean: ; rm -rf build build-*

help: ; @sed -n 's/^#: /  make /p' Makefile

deps:      ; @tools/deps deps.txt
deps-test: ; @tools/deps deps.txt deps-test.txt
deps-dev:  ; @tools/deps deps.txt deps-test.txt deps-dev.txt
deps-kube: ; @tools/deps deps.txt deps-kube.txt

comma := ,
.PHONY: all demo tests test test-all test-kube check check-all asan tsan fuzz benches bench bench-ort bench-dnnl bench-decoder bench-tenants bench-serve bench-tiny bench-noisy bench-overload bench-tune bench-attacks bench-open-shapes soak debug install format clean help deps deps-test deps-dev deps-kube
