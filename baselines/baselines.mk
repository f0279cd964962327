# Engines: shared objects with one exported function, loaded by the harness at run time.
#
# baselines/NAME.c or .cpp becomes $(B)/engines/NAME.so (underscores become dashes). pabd.c, the adapter of our own
# solver, is built twice: pabd.so (float) and pabd-double.so. Extra flags and libraries of an engine:
#   ENGINE_<file stem>_FLAGS, ENGINE_<file stem>_LIBS, ENGINE_<file stem>_NEEDS (order-only prerequisites)
# Sources in baselines/common/ are linked into every engine. An engine whose library could not be had is not built;
# $(B)/engines/NAME.unavailable then holds one line of why, which `pabd-bench list` and the tests show.

ENGINE_COMMON := $(call objects,common,$(wildcard baselines/common/*.c)) $(SCENE_OBJECTS)
ENGINE_STEMS := $(filter-out pabd,$(basename $(notdir $(wildcard baselines/*.c baselines/*.cpp))))
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
$(B)/obj/common/baselines/$(1).o: | $$(ENGINE_$(1)_NEEDS)
$(B)/engines/$(call dashed,$(1)).so: $(B)/obj/common/baselines/$(1).o $(ENGINE_COMMON)
	@mkdir -p $$(@D)
	$$(call say,LINK,$$@)
	$$(Q)$$(if $$(wildcard baselines/$(1).cpp),$$(CXX),$$(CC)) -shared $$(LDFLAGS_ALL) $$(ENGINE_LINK_FLAGS) $$(filter %.o,$$^) $$(ENGINE_$(1)_LIBS) -lm -o $$@
endef
$(foreach stem,$(ENGINE_STEMS),$(eval $(call ENGINE_RULE,$(stem))))

.PHONY: engines
engines: $(ENGINES) ## Build the engine shared objects
