# Engines: shared objects with one exported function, loaded by the harness at run time.
#
# baselines/NAME.c or .cpp becomes $(B)/engines/NAME.so (underscores become dashes). pabd.c, the adapter of our own
# solver, is built twice: pabd.so (float) and pabd-double.so. Sources in baselines/common/ are linked into every engine,
# those in baselines/NAME/ into NAME.
# Of an engine NAME.c that needs a library:
#   ENGINE_NAME_FLAGS, ENGINE_NAME_LIBS   compiler flags and link line
#   ENGINE_NAME_FROM                      folder of the library under $(THIRD); it is not there: $(ENGINE_NAME_FROM)/unavailable.txt
#                                         says why, in one line
# An engine whose library could not be had is not built; $(B)/engines/NAME.unavailable then holds that line, for
# `pabd-bench list`, the report and the tests. With CI=true a missing library is a failure.

# ---- third-party libraries --------------------------------------------------------------------------------------------
BULLET := $(THIRD)/bullet
BULLET_INCLUDES := -isystem $(BULLET)/source/src -isystem $(BULLET)/source/examples -isystem $(BULLET)/source/examples/SharedMemory
ENGINE_bullet_FROM := $(BULLET)
ENGINE_bullet_FLAGS := $(BULLET_INCLUDES) -DBT_THREADSAFE=1 -DPABD_BULLET_BUILD='"source: -O3 -march=native -fno-math-errno -fno-trapping-math, float, thread-safe"'
ENGINE_bullet_LIBS := $(BULLET)/lib/libbullet.a -lstdc++ -lpthread -ldl
ENGINE_bullet_native_FROM := $(BULLET)
ENGINE_bullet_native_FLAGS := $(ENGINE_bullet_FLAGS)
ENGINE_bullet_native_LIBS := $(ENGINE_bullet_LIBS)

third-party: setup
	@baselines/bullet/get.sh $(BULLET) '$(COMPILER) $(NATIVE)'

ODE := $(THIRD)/ode
ENGINE_ode_FROM := $(ODE)
ENGINE_ode_LIBS := -lode

MUJOCO := $(THIRD)/mujoco
ENGINE_mujoco_FROM := $(MUJOCO)
ENGINE_mujoco_FLAGS := -isystem $(MUJOCO)/include
ENGINE_mujoco_LIBS := -L$(MUJOCO)/lib -l:libmujoco.so.4.0.0 -Wl,-rpath,$(ROOT)/$(MUJOCO)/lib

# SuiteSparse, for the reference engine. Nothing else links it.
SUITESPARSE := $(THIRD)/reference
ENGINE_reference_FROM := $(SUITESPARSE)
ENGINE_reference_LIBS := -lumfpack

# External engines with a name: baselines/external/NAME.py behind the bridge external.c, its Python package in $(THIRD)/NAME.
EXTERNAL_NAMES := rapier physx
$(foreach name,$(EXTERNAL_NAMES),$(eval ENGINE_$(name)_FROM := $(THIRD)/$(name)))

# The engines beyond Bullet: each is set up by `make engine-NAME` (baselines/NAME/get.sh), all by `make engines`.
ENGINES_MORE := ode mujoco reference $(EXTERNAL_NAMES)
.PHONY: $(addprefix engine-,$(ENGINES_MORE)) $(addprefix get-,$(ENGINES_MORE))
$(addprefix get-,$(ENGINES_MORE)): get-%: setup
	@baselines/$(if $(filter $*,$(EXTERNAL_NAMES)),external/get.sh $*,$*/get.sh) $(THIRD)/$* '$(COMPILER)'
$(addprefix engine-,$(ENGINES_MORE)): engine-%: get-%
	@if [[ -f $(THIRD)/$*/key.txt ]]; then $(MAKE) --no-print-directory $(B)/engines/$*.so; fi

# ---- engines ----------------------------------------------------------------------------------------------------------
ENGINE_COMMON := $(call objects,common,$(wildcard baselines/common/*.c)) $(SCENE_OBJECTS)
ENGINE_ALL_STEMS := $(filter-out pabd template,$(basename $(notdir $(wildcard baselines/*.c baselines/*.cpp)))) $(EXTERNAL_NAMES)
# Those without a library of their own, or whose library is there (its folder has a key.txt, written last).
ENGINE_STEMS := $(foreach stem,$(ENGINE_ALL_STEMS),$(if $(ENGINE_$(stem)_FROM),$(if $(wildcard $(ENGINE_$(stem)_FROM)/key.txt),$(stem)),$(stem)))
ENGINE_MISSING := $(filter-out $(ENGINE_STEMS),$(ENGINE_ALL_STEMS))
dashed = $(subst _,-,$(1))
ENGINES := $(foreach stem,$(ENGINE_STEMS),$(B)/engines/$(call dashed,$(stem)).so)
ifneq ($(wildcard baselines/pabd.c),)
ENGINES += $(B)/engines/pabd.so $(B)/engines/pabd-double.so
endif

define PABD_ENGINE_RULE
$(B)/engines/$(2).so: $(B)/obj/$(1)/baselines/pabd.o $(LIBPABD_$(1)) $(ENGINE_COMMON)
	@mkdir -p $$(@D)
	$$(call say,LINK,$$@)
	$$(Q)$$(CC) -shared $$(LDFLAGS_ALL) $$(ENGINE_LINK_FLAGS) $$(filter %.o,$$^) $$(filter %.a,$$^) -lm -o $$@
endef
$(eval $(call PABD_ENGINE_RULE,float,pabd))
$(eval $(call PABD_ENGINE_RULE,double,pabd-double))

define ENGINE_RULE
$(B)/obj/common/baselines/$(1).o: DEFINES += $$(ENGINE_$(1)_FLAGS)
$(if $(ENGINE_$(1)_FROM),$(B)/obj/common/baselines/$(1).o: $(ENGINE_$(1)_FROM)/key.txt)
$(B)/engines/$(call dashed,$(1)).so: $(B)/obj/common/baselines/$(1).o $(call objects,common,$(wildcard baselines/$(1)/*.c)) $(ENGINE_COMMON)
	@mkdir -p $$(@D)
	$$(call say,LINK,$$@)
	$$(Q)$$(if $$(wildcard baselines/$(1).cpp),$$(CXX),$$(CC)) -shared $$(LDFLAGS_ALL) $$(ENGINE_LINK_FLAGS) $$(filter %.o,$$^) $$(ENGINE_$(1)_LIBS) -lm -o $$@
endef
$(foreach stem,$(filter-out $(EXTERNAL_NAMES),$(ENGINE_STEMS)),$(eval $(call ENGINE_RULE,$(stem))))

define EXTERNAL_RULE
$(B)/obj/common/baselines/external_$(1).o: DEFINES += -DPABD_EXTERNAL_NAME='"$(1)"' \
    -DPABD_EXTERNAL_COMMAND='"exec python3 \"$(ROOT)/baselines/external/$(1).py\" \"$(ROOT)/$(ENGINE_$(1)_FROM)/python\""'
$(B)/obj/common/baselines/external_$(1).o: baselines/external.c $(FLAG_STAMP) | setup
	@mkdir -p $$(@D)
	$$(call say,CC,$$< ($(1)))
	$$(Q)$$(CC) $$(CFLAGS_ALL) $$(INCLUDES) $$(DEFINES) -MMD -MP -c $$< -o $$@
$(B)/engines/$(1).so: $(B)/obj/common/baselines/external_$(1).o $(ENGINE_COMMON)
	@mkdir -p $$(@D)
	$$(call say,LINK,$$@)
	$$(Q)$$(CC) -shared $$(LDFLAGS_ALL) $$(ENGINE_LINK_FLAGS) $$(filter %.o,$$^) -lm -o $$@
endef
$(foreach name,$(filter $(EXTERNAL_NAMES),$(ENGINE_STEMS)),$(eval $(call EXTERNAL_RULE,$(name))))

# The template for new engines is built for its test only: it is no baseline.
$(B)/tests/engines/template.so: $(B)/obj/common/baselines/template.o $(ENGINE_COMMON)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -shared $(LDFLAGS_ALL) $(ENGINE_LINK_FLAGS) $(filter %.o,$^) -lm -o $@
test-programs: $(B)/tests/engines/template.so

.PHONY: engines phase-engines
engines: third-party $(addprefix get-,$(ENGINES_MORE)) ## Build all engines; engine-NAME one of them: ode, mujoco, reference, rapier, physx
	@$(MAKE) --no-print-directory phase-engines

phase-engines: $(ENGINES)
	@mkdir -p $(B)/engines
	@rm -f $(B)/engines/*.unavailable
	@$(foreach stem,$(ENGINE_MISSING),rm -f $(B)/engines/$(call dashed,$(stem)).so; \
	  { cat $(ENGINE_$(stem)_FROM)/unavailable.txt 2>/dev/null || echo 'not set up (make engine-$(call dashed,$(stem)))'; } \
	  > $(B)/engines/$(call dashed,$(stem)).unavailable; )
