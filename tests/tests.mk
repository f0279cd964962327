# Tests. Every tests/test_*.c becomes a program $(B)/tests/test_*, linked with the scene, the cases and the harness (all
# but its main). tests/test_solver_*.c also get libpabd, and are built twice: NAME (float) and NAME_double. Other C files
# in tests/ are helpers linked into every test. tests/engines/*.c are small engines for harness tests
# ($(B)/tests/engines/NAME.so). tests/test_device_*.c get libpabd and the device back end on its stand-in. tests/test_*.sh are scripts that end with the same line "N passed, N failed".
# Macro in force: PABD_BUILD_DIR, this flavor's build folder relative to the root; tests run in the root.

TEST_SOURCES := $(wildcard tests/test_*.c)
TEST_SOLVER_SOURCES := $(wildcard tests/test_solver_*.c)
TEST_DEVICE_SOURCES := $(wildcard tests/test_device_*.c)
TEST_SUITE_SOURCES := $(filter-out $(TEST_SOLVER_SOURCES) $(TEST_DEVICE_SOURCES),$(TEST_SOURCES))
TEST_HELPERS := $(filter-out $(TEST_SOURCES),$(wildcard tests/*.c))
TEST_SCRIPTS := $(wildcard tests/test_*.sh)
TEST_ENGINES := $(patsubst tests/engines/%.c,$(B)/tests/engines/%.so,$(wildcard tests/engines/*.c))
TEST_PROGRAMS := $(TEST_SUITE_SOURCES:tests/%.c=$(B)/tests/%) $(TEST_SOLVER_SOURCES:tests/%.c=$(B)/tests/%) \
                 $(TEST_SOLVER_SOURCES:tests/%.c=$(B)/tests/%_double) $(TEST_DEVICE_SOURCES:tests/%.c=$(B)/tests/%)

$(B)/obj/%: DEFINES += -DPABD_BUILD_DIR='"$(B)"'

define TEST_LINK
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(SUITE_LIBS) -o $@
endef

$(TEST_SUITE_SOURCES:tests/%.c=$(B)/tests/%): $(B)/tests/%: $(B)/obj/common/tests/%.o $(call objects,common,$(TEST_HELPERS)) $(LIBSUITE)
	$(TEST_LINK)

$(TEST_SOLVER_SOURCES:tests/%.c=$(B)/tests/%): $(B)/tests/%: $(B)/obj/float/tests/%.o $(call objects,common,$(TEST_HELPERS)) $(LIBSUITE) $(LIBPABD_float)
	$(TEST_LINK)

$(TEST_SOLVER_SOURCES:tests/%.c=$(B)/tests/%_double): $(B)/tests/%_double: $(B)/obj/double/tests/%.o $(call objects,common,$(TEST_HELPERS)) $(LIBSUITE) $(LIBPABD_double)
	$(TEST_LINK)

$(TEST_DEVICE_SOURCES:tests/%.c=$(B)/tests/%): $(B)/tests/%: $(B)/obj/float/tests/%.o $(call objects,common,$(TEST_HELPERS)) $(LIBSUITE) $(LIBPABD_float) $(LIBSTANDIN) $(B)/obj/common/tests/gpu/count_operations.o
	$(TEST_LINK) -lstdc++

$(B)/tests/engines/%.so: $(B)/obj/common/tests/engines/%.o $(SCENE_OBJECTS)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -shared $(LDFLAGS_ALL) $(ENGINE_LINK_FLAGS) $(filter %.o,$^) -lm -o $@

# What the engines written here share is tested without an engine around it.
$(B)/tests/test_engine_collide: $(call objects,common,$(wildcard baselines/common/*.c))

# Objects would otherwise be deleted as intermediate files of the pattern rules.
.SECONDARY:

.PHONY: test test-programs phase-test
test: third-party ## Build everything and run all tests (T=name: only tests whose name contains it)
	@$(MAKE) --no-print-directory phase-test

test-programs: $(TEST_PROGRAMS) $(TEST_ENGINES) $(PABD_BENCH)

phase-test: test-programs phase-engines device
	@tests/run.sh $(B) '$(T)' $(TEST_PROGRAMS) $(TEST_SCRIPTS)

.PHONY: check
check: setup $(BUILD_INFO) ## Format, include rules, static analysis (cppcheck, clang-tidy)
	@harness/setup/setup.sh check
	@tests/check.sh format includes cppcheck tidy

# gpu-check: the same program against CUDA ($(B)/gpu-check, where there is nvcc) and, for its tests, against the stand-in.
$(B)/obj/standin/tests/gpu/gpu_check.o: DEFINES += -DPABD_STANDIN
$(B)/obj/standin/%.o: %.c $(FLAG_STAMP) | setup
	@mkdir -p $(@D)
	$(call say,CC,$< (stand-in))
	$(Q)$(CC) $(CFLAGS_ALL) $(INCLUDES) $(DEFINES) -MMD -MP -c $< -o $@
$(B)/tests/gpu_check_standin: $(B)/obj/standin/tests/gpu/gpu_check.o $(LIBSUITE) $(LIBPABD_float) $(LIBSTANDIN)
	$(TEST_LINK) -lstdc++
test-programs: $(B)/tests/gpu_check_standin

$(B)/gpu-check: $(B)/obj/float/tests/gpu/gpu_check.o $(LIBSUITE) $(LIBPABD_float) $(DEVICE_OBJECTS)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(CUDA_RUNTIME) -lstdc++ -lrt $(SUITE_LIBS) -o $@

.PHONY: gpu-check gpu-model phase-gpu-check
gpu-check: third-party ## On a machine with a GPU: same bits as the CPU? kernel and frame times; into results/gpu
	@$(MAKE) --no-print-directory phase-gpu-check
phase-gpu-check: $(if $(NVCC),device $(B)/gpu-check)
	@harness/gpu_check.sh $(if $(NVCC),$(B)/gpu-check,'') results/gpu
gpu-model: device $(B)/tests/gpu_check_standin ## What can be said without a GPU: compiler figures, predictions; into results/gpu
	@mkdir -p results/gpu
	@$(B)/tests/gpu_check_standin --model --out results/gpu
