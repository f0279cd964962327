# libpabd, twice from the same sources: float, and double with -DPABD_REAL_DOUBLE. The scene is a small object set of its
# own, linked into everything that reads scenes (harness, engines, tests) and free of any solver.

SCENE_SOURCES := $(wildcard solver/scene/*.c)
SCENE_OBJECTS := $(call objects,common,$(SCENE_SOURCES))

SOLVER_SOURCES := $(wildcard solver/*.c)
LIBPABD_float := $(B)/lib/libpabd.a
LIBPABD_double := $(B)/lib/libpabd-double.a

define LIBPABD_RULE
$(LIBPABD_$(1)): $(call objects,$(1),$(SOLVER_SOURCES)) $(FLAG_STAMP)
	@mkdir -p $$(@D)
	$$(call say,AR,$$@)
	$$(Q)rm -f $$@ && $$(AR) rcs $$@ $$(filter %.o,$$^)
endef
$(foreach flavor,float double,$(eval $(call LIBPABD_RULE,$(flavor))))

# ---- device code ------------------------------------------------------------------------------------------------------
# Every solver/*.cu is compiled for all architectures in each `make test`, warnings as errors, whether there is a GPU or
# not. Registers and spills per kernel and architecture go to build/cuda/ptxas.json; tests/test_device.sh fails on a
# spill. Without contraction (--fmad=false) device and CPU round alike. SAN and DEBUG do not change device objects.
DEVICE_SOURCES := $(wildcard solver/*.cu)
DEVICE_ARCHITECTURES := 75 80 86 89 90 100 120
CUDA_FOLDER := $(THIRD)/cuda
NVCC = $(or $(if $(filter 1,$(PABD_IGNORE_NVCC)),,$(or $(shell command -v nvcc),$(wildcard /usr/local/cuda/bin/nvcc))),$(wildcard $(CUDA_FOLDER)/nvidia/cu13/bin/nvcc))
NVCC_FLAGS := -std=c++17 -O3 --fmad=false -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror,-fPIC,-fvisibility=hidden,-fopenmp \
              --threads 2 -Xptxas -v $(foreach a,$(DEVICE_ARCHITECTURES),-gencode arch=compute_$(a),code=sm_$(a))

.PHONY: device
device: ## Compile the device code for all architectures (no GPU needed)

ifneq ($(DEVICE_SOURCES),)
.PHONY: third-party-cuda
third-party: third-party-cuda
third-party-cuda: setup
	@harness/setup/nvcc.sh $(CUDA_FOLDER)

DEVICE_OBJECTS := $(if $(NVCC),$(patsubst solver/%.cu,build/cuda/%.o,$(DEVICE_SOURCES)))
device: $(if $(NVCC),build/cuda/ptxas.json)

build/cuda/flags.txt: FORCE
	@mkdir -p $(@D)
	@text='$(NVCC) $(NVCC_FLAGS)'; printf '%s\n' "$$text" | cmp -s - $@ || printf '%s\n' "$$text" > $@

build/cuda/%.o: solver/%.cu build/cuda/flags.txt
	@mkdir -p $(@D)
	$(call say,NVCC,$<)
	$(Q)$(NVCC) $(NVCC_FLAGS) $(INCLUDES) -MMD -MP -MF build/cuda/$*.d -MT $@ -c $< -o $@ > build/cuda/$*.log 2>&1 \
	  || { grep -v '^ptxas info' build/cuda/$*.log >&2; rm -f $@; exit 1; }

build/cuda/ptxas.json: $(DEVICE_OBJECTS) solver/ptxas.awk
	@for log in $(DEVICE_OBJECTS:.o=.log); do echo "source $$(basename $$log .log).cu"; c++filt < $$log; done | \
	  awk -v compiler="$$($(NVCC) --version | grep -o 'release.*' | head -n 1)" -f solver/ptxas.awk > $@.tmp
	@mv $@.tmp $@

-include $(wildcard build/cuda/*.d)

# The engine pabd-cuda: loads without a GPU and then says why it is not available. The adapter is the one of pabd.so.
CUDA_RUNTIME = $(firstword $(wildcard $(foreach d,lib64 lib targets/x86_64-linux/lib,$(dir $(NVCC))../$(d)/libcudart_static.a)))
$(B)/obj/device/baselines/pabd.o: baselines/pabd.c $(FLAG_STAMP) | setup
	@mkdir -p $(@D)
	$(call say,CC,$< (cuda))
	$(Q)$(CC) $(CFLAGS_ALL) $(INCLUDES) $(DEFINES) -DPABD_DEVICE='"pabd-cuda"' -MMD -MP -c $< -o $@
$(B)/engines/pabd-cuda.so: $(B)/obj/device/baselines/pabd.o $(LIBPABD_float) $(SCENE_OBJECTS) $(DEVICE_OBJECTS)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -shared $(LDFLAGS_ALL) $(ENGINE_LINK_FLAGS) $(filter %.o,$^) $(filter %.a,$^) $(CUDA_RUNTIME) -lstdc++ -lrt -lpthread -ldl -lm -o $@
device: device-engine
.PHONY: device-engine
ifneq ($(NVCC),)
device-engine: $(B)/engines/pabd-cuda.so
else
device-engine:
	@mkdir -p $(B)/engines; rm -f $(B)/engines/pabd-cuda.so
	@{ cat $(CUDA_FOLDER)/unavailable.txt 2>/dev/null || echo 'no nvcc'; } > $(B)/engines/pabd-cuda.unavailable
endif
endif

# The device back end against the stand-in for the CUDA runtime (solver/standin): host code only, for tests.
LIBSTANDIN := $(B)/lib/libpabd-standin.a
STANDIN_OBJECTS := $(patsubst %.cu,$(B)/obj/standin/%.o,$(wildcard solver/*.cu)) $(B)/obj/standin/solver/standin/standin.o
STANDIN_COMPILE = $(CXX) $(CXXFLAGS_ALL) -Isolver/standin $(INCLUDES) -MMD -MP
$(B)/obj/standin/%.o: %.cu $(FLAG_STAMP) | setup
	@mkdir -p $(@D)
	$(call say,CXX,$< (stand-in))
	$(Q)$(STANDIN_COMPILE) -x c++ -c $< -o $@
$(B)/obj/standin/%.o: %.cpp $(FLAG_STAMP) | setup
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(STANDIN_COMPILE) -c $< -o $@
$(LIBSTANDIN): $(STANDIN_OBJECTS)
	@mkdir -p $(@D)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# The same engine on the stand-in, for tests of the harness's side.
$(B)/obj/standin/baselines/pabd.o: baselines/pabd.c $(FLAG_STAMP) | setup
	@mkdir -p $(@D)
	$(call say,CC,$< (stand-in))
	$(Q)$(CC) $(CFLAGS_ALL) $(INCLUDES) $(DEFINES) -DPABD_DEVICE='"pabd-standin"' -MMD -MP -c $< -o $@
$(B)/tests/engines/pabd-standin.so: $(B)/obj/standin/baselines/pabd.o $(LIBPABD_float) $(LIBSTANDIN) $(SCENE_OBJECTS)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -shared $(LDFLAGS_ALL) $(ENGINE_LINK_FLAGS) $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group -lstdc++ -lm -o $@
test-programs: $(B)/tests/engines/pabd-standin.so
