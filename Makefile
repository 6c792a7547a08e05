# A short front for Meson. `make help` lists what it can do.
B       ?= build
SETUP   ?= --buildtype=release -Ddebug=true
FUZZ    ?= all
SECONDS ?= 60

SANE  := --buildtype=debugoptimized -Db_lundef=false
TEST  := meson test --no-rebuild --print-errorlogs
clang  = $(MAKE) -s ninja CC=clang-14 B=build-$(1) SETUP='$(2)'

#:                build everything; the program is build/cotenant (optimised, with debug information)
all: ninja

#: demo           three tenants and a noisy neighbour on one server, before and after; then a glimpse of the rest
demo: all ; @tools/demo $(B)

#: test           run every test, long ones in part
test: all ; @$(TEST) -C $(B)

#: test-all       every test, the long ones too
test-all: all ; @COTENANT_LONG=1 $(TEST) -C $(B) -t 4

#: check          format, layers, headers, banned calls, clang with -Werror, cppcheck, clang-tidy
check: deps-dev ; @CC=clang-14 tools/configure build-clang --buildtype=plain && tools/check build-clang

#: asan           every test under the address and undefined behaviour sanitizers
asan: deps-dev ; @$(call clang,asan,$(SANE) -Db_sanitize=address$(comma)undefined) && $(TEST) -C build-asan -t 5

#: tsan           the tests that start threads, under the thread sanitizer
tsan: deps-dev ; @$(call clang,tsan,$(SANE) -Db_sanitize=thread) && $(TEST) -C build-tsan -t 5 --suite threads

#: fuzz           fuzz every target, or FUZZ=name alone, for SECONDS=60 each
fuzz: deps-dev ; @$(call clang,fuzz,$(SANE) -Db_sanitize=address$(comma)undefined -Dfuzz=true) && tools/fuzz build-fuzz '$(FUZZ)' $(SECONDS)

#: bench          run every benchmark
bench: all ; @tools/bench $(B)

#: bench-ort      ours against ONNX Runtime; MODELS="FILE.onnx ..." adds files, ONLY="NAME ..." chooses networks
bench-ort: all ; @MODELS='$(MODELS)' ONLY='$(ONLY)' ORT='$(ORT)' tools/bench-ort $(B) $(ARGS)

#: bench-tenants  tenants side by side: requests in time, ours and ONNX Runtime's; MIXES="light medium"
bench-tenants: all ; @MIXES='$(MIXES)' ORT='$(ORT)' tools/bench-tenants $(B) $(ARGS)

#: bench-serve    what serving costs beside computing, and how many small requests one core answers
bench-serve: all ; @tools/bench-serve $(B)

#: bench-noisy    two tenants with targets beside one that floods, by policy: requests in time
bench-noisy: all ; @tools/bench-noisy $(B) $(POLICIES)

#: bench-overload three times what a server can do, for a minute: goodput against its peak; ARGS="--seconds 60"
bench-overload: all ; @tools/bench-overload $(B) $(ARGS)

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

deps:     ; @tools/deps deps.txt
deps-dev: ; @tools/deps deps.txt deps-dev.txt

# Meson runs again when files came or went, so that a new file needs no mention anywhere.
ninja: deps
	@tools/configure $(B) $(SETUP)
	@ninja -C $(B)

comma := ,
.PHONY: all demo test test-all check asan tsan fuzz bench bench-ort bench-tenants bench-serve bench-noisy bench-overload soak debug install format clean help deps deps-dev ninja
