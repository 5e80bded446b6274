# One make, no recursion into folders, no configure.  `make help` lists the targets.
VERSION := 0.1.0
PREFIX  ?= /usr/local
TARGET  ?= linux
MODE    ?= release
B       := build/$(TARGET)-$(MODE)
Q        = $(if $(V),,@)
PKG_CONFIG ?= pkg-config

# x_SUFFIX.c is built only where SUFFIX belongs; aarch64 is the kernels' part alone.
FOR.linux     := linux posix
FOR.aarch64   := linux posix
PARTS.linux   := agent controller kernels common
PARTS.aarch64 := kernels common
other := $(filter-out $(FOR.$(TARGET)),linux posix win32)
pick   = $(filter-out $(other:%=\%_%.c),$(wildcard $(1)/*.c)) $(wildcard $(1)/*.S)
objs   = $(patsubst %,$(B)/%.o,$(basename $(filter-out %main.c $(2),$(call pick,$(1)))))

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wvla -Wformat=2 -Wundef -Wwrite-strings \
        -Wstrict-prototypes -Wmissing-prototypes $(if $(CI),-Werror)
SAN  := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
FLAGS.release := -O2 -g -fstack-protector-strong -D_FORTIFY_SOURCE=2
FLAGS.asan    := $(SAN)
FLAGS.fuzz    := $(SAN) -fsanitize=fuzzer-no-link
FLAGS.cover   := -O0 -g --coverage
# Kernel numbers are those of separate roundings: no contraction to FMA.
CC_ALL = $(CC) -std=c17 -D_GNU_SOURCE -DVERSION='"$(VERSION)"' -I. -I$(B)/gen -MMD -MP \
         -ffp-contract=off $(WARN) $(FLAGS.$(MODE)) $(CFLAGS)

libs = $(shell $(PKG_CONFIG) --libs $(1) 2>/dev/null)
LIBS.common     = $(call libs,libcjson libcrypto) -lm
LIBS.agent      = $(call libs,libmicrohttpd inih) $(LIBS.common)
LIBS.controller = $(call libs,libcurl sqlite3 libzstd inih) $(LIBS.common)
LIBS.all        = $(call libs,libmicrohttpd libcurl sqlite3 libzstd inih) $(LIBS.common)

# Device code depends on neither mode nor host: made once, in build/device.
DEV     := build/device
CU      := $(wildcard kernels/*.cu)
# The tool in PATH, in its usual place, or as deploy/fetch-nvcc left it.
nvccs   := $(shell command -v nvcc 2>/dev/null) \
           $(wildcard /usr/local/cuda/bin/nvcc $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/verify/nvcc/bin/nvcc)
NVCC    ?= $(firstword $(nvccs))
HIPCC   ?= $(shell command -v hipcc 2>/dev/null)
NM      ?= nm
OBJCOPY ?= objcopy
# Chips with code of their own, as far as this nvcc knows them; for later ones PTX, from
# the first chip with the matrix instructions that kernels use.
sms     := $(if $(NVCC),$(shell { $(NVCC) --list-gpu-code; $(NVCC) --version; } 2>/dev/null | \
             awk '/^sm_/ { print substr($$1, 4) } / release 1[2-9]/ { print "90a" }'))
SM      := $(filter $(sms),75 80 86 89 90a 100 120)
GFX     := $(if $(HIPCC),gfx90a)
FATBINS := $(if $(SM),$(CU:kernels/%.cu=$(DEV)/%.fatbin))
COS     := $(foreach g,$(GFX),$(CU:kernels/%.cu=$(DEV)/%.$(g).co))
SOURCES := $(shell awk -f kernels/embed_sources.awk $(CU))
NVCC_ALL = $(NVCC) -std=c++17 -O3 -I. -fatbin -Werror all-warnings \
           $(foreach s,$(SM),-gencode arch=compute_$(s),code=sm_$(s)) \
           -gencode arch=compute_80,code=compute_80
HIP_ALL  = $(HIPCC) -std=c++17 -O3 -I. -x hip --genco -Wall -Werror
# Shaders, where there are Vulkan's headers and glslc; else vulkan_none.c says that there are none.
GLSLC   ?= $(shell command -v glslc 2>/dev/null)
VULKAN  := $(if $(GLSLC),$(shell echo '\#include <vulkan/vulkan.h>' | $(CC) -E -x c - >/dev/null 2>&1 && echo yes))
MODULES := $(shell sed -n 's/.*X(\([a-z0-9_]*\)).*/\1/p' kernels/vulkan_modules.h)
SPVS    := $(MODULES:%=$(DEV)/%.spv)
NO_VULKAN := $(if $(VULKAN),kernels/vulkan_none.c,$(filter-out kernels/vulkan_none.c,$(wildcard kernels/vulkan_*.[cS])))
GLSL_ALL = $(GLSLC) --target-env=vulkan1.1 -fshader-stage=compute -O -Werror -MD
# Kernels as C++ for the CPU.  Without ASan, which can not follow fibers; what is undefined
# on a GPU traps.  GCC 12 merges functions whose arguments have different ranges and then
# believes one of them (its bug 113907): it must not.
SHIM_ALL = $(CXX) -std=c++20 -x c++ -DGPU_CPU -I. -MMD -MP -O2 -g -fPIC -fno-exceptions -fno-rtti \
           -fno-threadsafe-statics $(if $(findstring clang,$(CXX)),,-fno-ipa-icf) \
           -ffp-contract=off -fsanitize=alignment,bounds \
           -fsanitize-undefined-trap-on-error -Wall -Wextra -Wno-unknown-pragmas $(if $(CI),-Werror)

PROGS := $(B)/verify-agent $(B)/verify-controller $(B)/make-fixtures $(B)/make-model \
         $(addprefix $(B)/,cpu-verify cuda-verify hip-verify vulkan-verify emulated-verify)
UNIT  := $(patsubst tests/%.c,$(B)/%,$(filter-out $(if $(VULKAN),,%/test_vulkan.c %/test_vulkan_files.c),$(wildcard tests/unit/test_*.c)))
FUZZ  := $(patsubst tests/%.c,$(B)/%,$(wildcard tests/fuzz/fuzz_*.c))
BENCH := $(patsubst tests/%.c,$(B)/%,$(wildcard tests/bench/bench_*.c))
ARS   := $(PARTS.$(TARGET):%=$(B)/lib%.a)
# engine_verify.c is compiled where an engine is; here it is only carried.
KTOOL := kernels/make_fixtures.c kernels/engine_verify.c

.SECONDARY:
.DELETE_ON_ERROR:
.PHONY: all programs check unit asan fuzz fuzz-run bench lint demo \
        cpu-verify cuda-verify hip-verify emulated-verify hip-check fixtures install clean help deps-build \
        agent-portable agent-portable-check aarch64-check aarch64-run \
        older-run
all: deps-build ## both programs and the tools beside them
	$(Q)$(MAKE) --no-print-directory programs
programs: $(PROGS)
deps-build:
	$(Q)deploy/install-packages build

$(B)/%.o: %.c Makefile
	@mkdir -p $(@D); $(if $(V),,echo "  CC  $<")
	$(Q)$(CC_ALL) -c -o $@ $<
$(B)/%.o: %.S Makefile
	@mkdir -p $(@D); $(if $(V),,echo "  AS  $<")
	$(Q)$(CC) -I. -I$(B) -c -o $@ $<
$(B)/%.o: $(B)/%.c
	$(Q)$(CC_ALL) -c -o $@ $<
$(B)/common/suites.o: $(wildcard fixtures/suites/*.json)
$(B)/kernels/embed_fixtures.o: $(wildcard fixtures/kernels/*.json)
$(B)/kernels/engine_sources.o: $(addprefix kernels/,engine_verify.c ref.c ref_math.c table.c ref.h table.h) common/err.h
$(B)/agent/preload.o: $(B)/preload/linger.so $(B)/preload/scramble.so
# They live in another program: plain, whatever the mode.
$(B)/preload/%.so: agent/preload/%.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c17 -D_GNU_SOURCE -O2 -fPIC -shared -s $(WARN) -o $@ $< -ldl

# What one kernel includes, but for the names of other compilers.
others   := kernels/gpu_cpu.h kernels/gpu_fiber.h common/err.h
closure   = $(filter-out $(others) $(2),$(shell awk -f kernels/embed_sources.awk $(1)))
$(foreach c,$(CU),$(eval $(c:kernels/%.cu=$(DEV)/%.fatbin): $(call closure,$(c),kernels/gpu_hip.h)))
$(foreach c,$(CU),$(eval $(c:kernels/%.cu=$(DEV)/%.gfx90a.co): $(call closure,$(c),kernels/gpu_cuda.h)))
$(DEV)/%.fatbin: kernels/%.cu Makefile
	@mkdir -p $(@D); $(if $(V),,echo "  NVCC $<")
	$(Q)$(NVCC_ALL) -o $@ $<
# code object for one chip: the stem is NAME.CHIP
$(DEV)/%.co: Makefile
	@mkdir -p $(@D); $(if $(V),,echo "  HIP $*")
	$(Q)$(HIP_ALL) --offload-arch=$(lastword $(subst ., ,$*)) -o $@ kernels/$(firstword $(subst ., ,$*)).cu
# What was made goes into every program; a row less when a compiler is not there.
$(DEV)/code.list: FORCE
	@mkdir -p $(@D)
	@{ for f in $(notdir $(FATBINS)); do echo "cuda $$f $(DEV)/$$f $(SM:%=sm_%) compute_80"; done; \
	   for f in $(notdir $(COS)); do a=$${f%.co}; echo "hip $$f $(DEV)/$$f $${a##*.}"; done; \
	   for f in $(SOURCES); do echo "source $$f $$f"; done; } >$@.new; \
	 if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
.PHONY: FORCE
$(B)/gen/gpu_code.S: $(DEV)/code.list kernels/embed_code.awk
	@mkdir -p $(@D)
	$(Q)awk -f kernels/embed_code.awk $< >$@
$(B)/gen/gpu_code.o: $(B)/gen/gpu_code.S $(FATBINS) $(COS) $(SOURCES)
	$(Q)$(CC) -c -o $@ $<

# Both waves in one program: every name of an object gets its wave in front.
define wave
$(B)/wave$(1)/%.o: %.cu Makefile
	@mkdir -p $$(@D); $$(if $$(V),,echo "  WAVE$(1) $$<")
	$$(Q)$$(SHIM_ALL) -DGPU_WAVE=$(1) -MF $$(@:.o=.d) -MT $$@ -c -o $$@.plain $$<
	$$(Q)$$(NM) -g --defined-only $$@.plain | awk '{ print $$$$3, "wave$(1)_" $$$$3 }' >$$@.names
	$$(Q)$$(OBJCOPY) --redefine-syms=$$@.names $$@.plain $$@
endef
$(foreach w,32 64,$(eval $(call wave,$(w))))
WAVES := $(foreach w,32 64,$(CU:%.cu=$(B)/wave$(w)/%.o))
$(B)/gen/gpu_emulated.c: $(WAVES) kernels/embed_emulated.awk
	@mkdir -p $(@D)
	$(Q)$(NM) -g --defined-only $(WAVES) | awk -f kernels/embed_emulated.awk >$@
$(B)/kernels/gpu_fiber.o: FLAGS.asan := -O1 -g -fsanitize=undefined -fno-sanitize-recover=all
$(B)/libemulated.a: $(B)/kernels/gpu_fiber.o $(B)/gen/gpu_emulated.o $(WAVES)
$(B)/unit/test_encode $(B)/unit/test_gpu_shim: $(B)/libemulated.a
$(B)/unit/test_gpu_shim: $(foreach w,32 64,$(B)/wave$(w)/tests/gpu/shim.o)
# Drivers that are none, under the names of real ones: tests put their folder first.
FAKES := $(addprefix $(B)/fake/,libcuda.so.1 libamdhip64.so old/libcuda.so.1 old/libamdhip64.so)
$(B)/fake/libcuda.so.1 $(B)/fake/old/libcuda.so.1: tests/fake/cuda.c
$(B)/fake/libamdhip64.so $(B)/fake/old/libamdhip64.so: tests/fake/amdhip64.c
$(FAKES): kernels/gpu_args.h Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c17 -D_GNU_SOURCE -I. -O2 -fPIC -shared $(WARN) $(if $(findstring /old/,$@),-DFAKE_OLD) -o $@ $(filter %.c,$^)
$(B)/unit/test_gpu_device: | $(FAKES)
# Libraries of recorded machines (fixtures/machines): they answer from the folder that
# VERIFY_MACHINE names; those of CUDA and HIP compute, with the kernels played on the CPU.
MACHINES := $(addprefix $(B)/machine/,libcuda.so.1 libnvidia-ml.so.1 libamdhip64.so $(if $(VULKAN),libvulkan.so.1))
machine_fiber := kernels/gpu_fiber.c $(B)/gen/gpu_emulated.c common/err.c common/str.c $(WAVES)
$(B)/machine/libcuda.so.1: tests/fake/machine_cuda.c $(machine_fiber)
$(B)/machine/libnvidia-ml.so.1: tests/fake/machine_nvml.c
$(B)/machine/libamdhip64.so: tests/fake/machine_hip.c $(machine_fiber)
$(B)/machine/libvulkan.so.1: tests/fake/machine_vulkan.c
$(MACHINES): tests/fake/machine.h Makefile
	@mkdir -p $(@D); $(if $(V),,echo "  FAKE $@")
	$(Q)$(CC) -std=c17 -D_GNU_SOURCE -I. -I$(B)/gen -O2 -fPIC -shared -Wl,-Bsymbolic $(WARN) -o $@ \
	  $(filter %.c %.o,$^) $(call libs,libcjson)
.PHONY: machines
machines: $(MACHINES)

$(DEV)/%.spv: kernels/%.comp Makefile
	@mkdir -p $(@D); $(if $(V),,echo "  GLSL $<")
	$(Q)$(GLSL_ALL) -MF $@.d -o $@ $<
	$(Q)! command -v spirv-val >/dev/null || spirv-val --target-env vulkan1.1 $@
$(DEV)/%_plain.spv: kernels/%.comp Makefile
	@mkdir -p $(@D); $(if $(V),,echo "  GLSL $< (plain)")
	$(Q)$(GLSL_ALL) -DPLAIN -MF $@.d -o $@ $<
	$(Q)! command -v spirv-val >/dev/null || spirv-val --target-env vulkan1.1 $@
$(B)/kernels/vulkan_code.o: $(SPVS) kernels/vulkan_modules.h
# Metal has these translations only: no program for it is built here.
$(DEV)/%.metal: $(DEV)/%.spv
	$(Q)spirv-cross $< --msl --msl-version 20100 --output $@
	$(Q)grep -q '^kernel void main0(' $@ || { echo "$@: no kernel in the translation"; exit 1; }

$(B)/gen/sql.c: sql/embed.awk $(sort $(wildcard sql/*.sql))
	@mkdir -p $(@D)
	$(Q)awk -f sql/embed.awk $(sort $(filter %.sql,$^)) > $@

$(B)/lib%.a:
	$(Q)rm -f $@; $(AR) rcs $@ $^
$(B)/libcommon.a: $(call objs,common)
$(B)/libkernels.a: $(call objs,kernels,$(KTOOL) kernels/gpu_fiber.c $(NO_VULKAN)) $(B)/gen/gpu_code.o
$(B)/libagent.a: $(call objs,agent)
$(B)/libcontroller.a: $(call objs,controller) $(B)/gen/sql.o

$(B)/verify-agent: $(B)/agent/main.o $(B)/libagent.a $(B)/libkernels.a $(B)/libcommon.a
	$(Q)$(CC_ALL) $(LDFLAGS) -o $@ $^ $(LIBS.agent)
$(B)/verify-controller: $(B)/controller/main.o $(B)/libcontroller.a $(B)/libcommon.a
	$(Q)$(CC_ALL) $(LDFLAGS) -o $@ $^ $(LIBS.controller)
$(B)/emulated-verify: $(B)/kernels/emulated_verify_main.o $(B)/libkernels.a $(B)/libemulated.a $(B)/libcommon.a
	$(Q)$(CC_ALL) $(LDFLAGS) -o $@ $^ $(LIBS.common)
$(B)/%-verify: $(B)/kernels/%_verify_main.o $(B)/libkernels.a $(B)/libcommon.a
	$(Q)$(CC_ALL) $(LDFLAGS) -o $@ $^ $(LIBS.common)
$(B)/make-fixtures: $(B)/kernels/make_fixtures.o $(B)/libkernels.a $(B)/libcommon.a
	$(Q)$(CC_ALL) $(LDFLAGS) -o $@ $^ $(LIBS.common)
$(B)/make-model: $(B)/agent/make_model_main.o $(B)/libagent.a $(B)/libkernels.a $(B)/libcommon.a
	$(Q)$(CC_ALL) $(LDFLAGS) -o $@ $^ $(LIBS.agent)

$(B)/unit/%: $(B)/tests/unit/%.o $(ARS)
	@mkdir -p $(@D)
	$(Q)$(CC_ALL) -o $@ $^ -lcmocka $(LIBS.all)
$(B)/unit/test_vulkan_files: | $(B)/fake/broken_icd.so
$(B)/fake/%.so: tests/fake/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c17 -D_GNU_SOURCE -O2 -fPIC -shared $(WARN) -o $@ $<
$(B)/bench/%: $(B)/tests/bench/%.o $(ARS)
	@mkdir -p $(@D)
	$(Q)$(CC_ALL) -o $@ $^ $(LIBS.all)
$(B)/fuzz/%: $(B)/tests/fuzz/%.o $(if $(filter fuzz,$(MODE)),,$(B)/tests/fuzz/replay.o) $(ARS)
	@mkdir -p $(@D)
	$(Q)$(CC_ALL) $(if $(filter fuzz,$(MODE)),-fsanitize=fuzzer) -o $@ $^ $(LIBS.all)

unit: $(UNIT) $(FUZZ)
	$(Q)for t in $(UNIT); do echo "  UNIT $${t##*/}"; $$t || exit 1; done
	$(Q)for t in $(FUZZ); do $$t fixtures/corpus/$${t##*/fuzz_}/* || exit 1; done
check: ## installs what the tests need; units and scenarios under ASan and UBSan, lint
	$(Q)deploy/install-packages check
	$(Q)deploy/fetch-nvcc >/dev/null || { [ $$? = 77 ] && echo "  NVCC skipped: there is none, and the CUDA kernels are not compiled"; }
	$(Q)$(MAKE) --no-print-directory lint
	$(Q)$(MAKE) --no-print-directory metal-check
	$(Q)$(MAKE) --no-print-directory MODE=asan programs machines unit
	$(Q)$(MAKE) --no-print-directory programs
	$(Q)tests/run build/$(TARGET)-asan
.PHONY: metal-check metal-verify vulkan-verify
metal-check: $(if $(VULKAN),$(MODULES:%=$(DEV)/%.metal)) ## every shader can be translated for Metal
	$(Q)echo "  METAL $(if $(VULKAN),$(words $^) shaders translated; nothing compiles or runs them here,skipped: no glslc or no Vulkan headers)"
metal-verify: ## says that there is no program for Metal
	$(Q)echo "blocked metal_host_not_built: the shaders are translated for Metal (make metal-check), but the program that would run them on a Mac is not built." >&2; exit 3
asan: ## units and scenarios again, nothing installed
	$(Q)$(MAKE) --no-print-directory MODE=asan programs machines unit
	$(Q)tests/run build/$(TARGET)-asan
fuzz: ## explore each parser for FUZZ_SECONDS (30), with clang
	$(Q)deploy/install-packages build fuzz
	$(Q)$(MAKE) --no-print-directory MODE=fuzz CC=clang fuzz-run
fuzz-run: $(FUZZ)
	$(Q)for t in $^; do c=$(B)/corpus/$${t##*/fuzz_}; mkdir -p $$c; \
	  $$t -max_total_time=$(or $(FUZZ_SECONDS),30) $$c fixtures/corpus/$${t##*/fuzz_} || exit 1; done
bench: programs $(BENCH) ## ratios: digest, ledger, idle memory, overhead of a job
	$(Q)tests/bench/run $(B)
fixtures: programs ## regenerate fixtures/kernels from the documented stream
	$(Q)$(B)/make-fixtures fixtures/kernels
demo: ## installs what is missing, builds, runs the main job, prints verdict and classes
	$(Q)deploy/install-packages demo
	$(Q)$(MAKE) --no-print-directory programs
	$(Q)deploy/demo $(B)
# Each builds its program and checks the kernels on this machine; ARGS= for options.
verify = $(Q)deploy/install-packages build && $(MAKE) --no-print-directory $(B)/$@ && $(B)/$@ $(ARGS)
cpu-verify: ## checks the kernels on this processor
	$(verify)
cuda-verify: ## checks the kernels on this machine's NVIDIA GPU
	$(verify)
hip-verify: ## checks the kernels on this machine's AMD GPU
	$(verify)
vulkan-verify: ## checks the kernels on this machine's Vulkan device
	$(verify)
emulated-verify: ## plays the CUDA and HIP kernels on the processor
	$(verify)
hip-check: ## compiles the HIP kernels for newer chips too, with clang-19; runs nothing
	$(Q)deploy/install-packages build hip
	$(Q)tests/hip-check
.PHONY: vulkan-dispatch-smoke
vulkan-dispatch-smoke: ## computes the engine's score routes on Vulkan (ELIZA_MTP_LLAMA_DIR=...)
	$(Q)[ "$$(uname -s)" = Linux ] || { echo "vulkan-dispatch-smoke: native Vulkan on Linux only; MoltenVK is none" >&2; exit 2; }
	$(Q)deploy/install-packages build && $(MAKE) --no-print-directory $(B)/verify-agent
	$(Q)$(B)/verify-agent $@ $(ARGS)
.PHONY: mutants
mutants: ## wrong kernels, which the programs must see: ARGS='turbo4-* glsl-*' for some, JOBS=2
	$(Q)deploy/install-packages build check
	$(Q)$(MAKE) --no-print-directory programs
	$(Q)tests/mutants/run $(B) $(ARGS)
lint: ## layers, banned calls, cppcheck, shellcheck, man pages
	$(Q)deploy/install-packages build check lint
	$(Q)tests/lint
PORTABLE := build/portable/verify-agent
agent-portable: ## build/portable/verify-agent for a bare host: needs libc and libm alone
	$(Q)deploy/install-packages build portable
	$(Q)p=$$(deploy/portable libraries) && $(MAKE) --no-print-directory B=build/portable MODE=release \
	  CFLAGS="-I$$p/include $(CFLAGS)" LDFLAGS="-static-libgcc -s $(LDFLAGS)" \
	  LIBS.agent="$$p/lib/libmicrohttpd.a $$p/lib/libcjson.a -Wl,-Bstatic -linih -lcrypto -Wl,-Bdynamic -lm" \
	  $(PORTABLE)
	$(Q)deploy/portable gate $(PORTABLE)
agent-portable-check: agent-portable ## the same, then runs it in a bare chroot
	$(Q)tests/run build/portable $(CURDIR)/tests/cases/80-portable.sh
# Tests of the kernels' part that start no other program.
AARCH64 := $(B)/cpu-verify $(addprefix $(B)/unit/test_,cpu_simd ref kernel kernel_fixture device \
  digest elog elog_judge err job json judge lane opt sign str suite transcript verdict)
aarch64-check: ## cross-builds the kernels' part and runs it emulated; older x86-64 processors, too
	$(Q)deploy/install-packages build aarch64
	$(Q)s=$$(deploy/sysroot arm64) && export PKG_CONFIG_SYSROOT_DIR=$$s \
	  PKG_CONFIG_LIBDIR=$$s/usr/lib/aarch64-linux-gnu/pkgconfig && $(MAKE) --no-print-directory \
	  TARGET=aarch64 MODE=release CC="aarch64-linux-gnu-gcc --sysroot=$$s" AR=aarch64-linux-gnu-ar \
	  EMULATOR="qemu-aarch64 -L $$s" aarch64-run
	$(Q)[ "$$(uname -m)" != x86_64 ] || \
	  $(MAKE) --no-print-directory MODE=release PARTS.linux='kernels common' older-run
aarch64-run: $(AARCH64)
	$(Q)for t in $^; do echo "  EMULATED $${t##*/}"; $(EMULATOR) $$t || exit 1; done
# This machine's kernels on processors without AVX, and without AVX-512.
older-run: $(B)/unit/test_cpu_simd
	$(Q)for c in qemu64 max; do echo "  EMULATED $(<F) on $$c"; qemu-x86_64 -cpu $$c $< || exit 1; done
install: all ## honours DESTDIR= and PREFIX=
	install -D -m 755 $(B)/verify-agent $(DESTDIR)$(PREFIX)/sbin/verify-agent
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/bin $(B)/verify-controller \
	  $(addprefix $(B)/,cpu-verify cuda-verify hip-verify vulkan-verify make-model)
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man8 agent/*.8
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man5 agent/*.5
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man1 controller/*.1 kernels/*.1
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/verify README.md CHANGELOG.md LICENSE deploy/verify-agent.conf
clean: ## remove build/
	rm -rf build
help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.* ## /\1\t/p' Makefile

-include $(shell find $(B) -name '*.d' 2>/dev/null) $(wildcard $(DEV)/*.spv.d)
