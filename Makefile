# A short front for Meson. `make help` lists what it can do.
B       ?= build
SETUP   ?= --buildtype=release -Ddebug=true
FUZZ    ?= all
SECONDS ?= 60

SANE  := --buildtype=debugoptimized -Db_lundef=false
TEST  := meson test --no-rebuild --print-errorlogs
CCACHE := $(shell command -v ccache)
# Meson finds ccache by itself for the default compiler, not for one that is named.
CLANG  := $(if $(CCACHE),ccache clang-14,clang-14)
clang   = tools/configure build-$(1) $(2) && ninja -C build-$(1) $(3)

#:                build the program, build/cotenant (optimised, with debug information)
all: deps ; @tools/configure $(B) $(SETUP) && ninja -C $(B) cotenant

#: demo           three tenants and a noisy neighbour on one server, before and after; then a glimpse of the rest
demo: all ; @tools/demo $(B)

#: tests          build the program and its tests
tests: deps-test ; @tools/configure $(B) $(SETUP) && ninja -C $(B) tests

#: test           run every test, long ones in part
test: tests ; @$(TEST) -C $(B)

#: test-all       every test, the long ones too
test-all: tests ; @COTENANT_LONG=1 $(TEST) -C $(B) -t 4

#: check          format, layers, names, headers, banned calls, clang with -Werror, cppcheck, clang-tidy
check: deps-dev ; @tools/configure build-clang --buildtype=plain && tools/check build-clang

#: check-all      the same, with clang's path-sensitive analyser
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

#: bench-ort      ours against ONNX Runtime; MODELS="FILE.onnx ..." adds files, ONLY="NAME ..." chooses networks
bench-ort: benches ; @MODELS='$(MODELS)' ONLY='$(ONLY)' ORT='$(ORT)' tools/bench-ort $(B) $(ARGS)

#: bench-tenants  tenants side by side: requests in time, ours and ONNX Runtime's; MIXES="light medium"
bench-tenants: benches ; @MIXES='$(MIXES)' ORT='$(ORT)' tools/bench-tenants $(B) $(ARGS)

#: bench-serve    what serving costs beside computing, and how many small requests one core answers
bench-serve: benches ; @tools/bench-serve $(B)

#: bench-noisy    two tenants with targets beside one that floods, by policy: requests in time
bench-noisy: benches ; @tools/bench-noisy $(B) $(POLICIES)

#: bench-overload three times what a server can do, for a minute: goodput against its peak; ARGS="--seconds 60"
bench-overload: benches ; @tools/bench-overload $(B) $(ARGS)

#: soak           load, reloads, unloads and cancelled requests for MINUTES=10: a server as slim afterwards
soak: all ; @MINUTES='$(MINUTES)' tools/soak $(B)

#: debug          build without optimisation, to build-debug
debug: ; @$(MAKE) -s all B=build-debug SETUP=--buildtype=debug

#: install        install to usr/local below DESTDIR=, or to this machine
install: all ; @DESTDIR='$(if $(DESTDIR),$(abspath $(DESTDIR)))' meson install -C $(B) --no-rebuild

#: format         lay out the source with clang-format
format: deps-dev ; @tools/sources '*.[ch]' src tests bench | xargs clang-format-14 -i

#: clean          remove every build folder
clean: ; rm -rf build build-*

help: ; @sed -n 's/^#: /  make /p' Makefile

deps:      ; @tools/deps deps.txt
deps-test: ; @tools/deps deps.txt deps-test.txt
deps-dev:  ; @tools/deps deps.txt deps-test.txt deps-dev.txt

comma := ,
.PHONY: all demo tests test test-all check check-all asan tsan fuzz benches bench bench-ort bench-tenants bench-serve bench-noisy bench-overload soak debug install format clean help deps deps-test deps-dev
