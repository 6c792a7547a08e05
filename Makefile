# A short front for Meson. make help lists the targets.
B    ?= build
TYPE ?= release

all: deps configure ; @ninja -C $(B)

deps: ; @tools/deps

configure:
	@mkdir -p $(B) && find src tests bench fuzz -name '*.[ch]' 2>/dev/null | LC_ALL=C sort > $(B)/.files.new
	@if [ ! -f $(B)/build.ninja ]; then meson setup $(B) --buildtype=$(TYPE) -Ddebug=true; \
	elif ! cmp -s $(B)/.files $(B)/.files.new; then meson setup --reconfigure $(B); fi > $(B)/.setup.log || { cat $(B)/.setup.log; exit 1; }
	@mv $(B)/.files.new $(B)/.files

test: all ; @meson test -C $(B) --no-rebuild --print-errorlogs

clean: ; rm -rf $(B)
.PHONY: all deps configure test clean
