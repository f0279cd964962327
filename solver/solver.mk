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
