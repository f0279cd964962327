# Bullet's C API as a static library in float, from the files listed in sources.txt. Called by get.sh, not included by the
# main Makefile: third-party code is compiled once and then left alone. Flags: the contract's, as for every engine built
# from source. The last two, as in our own code, only let square roots be single instructions and comparisons vectorize; they
# change no result. Contraction to fused multiply-add stays on here (the compiler's default) and is off in our code.

BULLET_FLAGS := -O3 -march=native -fno-math-errno -fno-trapping-math
BULLET_DEFINES := -D_LINUX -DBT_THREADSAFE=1 -DB3_ENABLE_FILEIO_PLUGIN -DB3_USE_ZIPFILE_FILEIO -DSTATIC_LINK_SPD_PLUGIN \
                  -DBT_ENABLE_VHACD
BULLET_INCLUDES := -Isrc -Iexamples -Iexamples/ThirdPartyLibs -Iexamples/ThirdPartyLibs/zlib -IExtras/VHACD/inc \
                   -IExtras/VHACD/public -IExtras/Serialize
CC ?= gcc
CXX ?= g++
ifeq ($(origin CC),default)
CC := gcc
endif

SOURCES := $(shell cat $(LIST))
OBJECTS := $(addprefix $(BULLET)/obj/,$(addsuffix .o,$(SOURCES)))

$(BULLET)/lib/libbullet.a: $(OBJECTS)
	rm -f $@ $@.part
	ar rcs $@.part $^
	mv $@.part $@

# Only the command processor (22 000 lines) and the whole-library files take long: they come first in the list.
$(BULLET)/obj/%.cpp.o:
	@mkdir -p $(@D)
	cd $(BULLET)/source && $(CXX) $(BULLET_FLAGS) -fPIC -fvisibility=hidden -w $(BULLET_DEFINES) $(BULLET_INCLUDES) -c $*.cpp -o $@

$(BULLET)/obj/%.c.o:
	@mkdir -p $(@D)
	cd $(BULLET)/source && $(CC) $(BULLET_FLAGS) -fPIC -fvisibility=hidden -w $(BULLET_DEFINES) -DHAVE_UNISTD_H $(BULLET_INCLUDES) -c $*.c -o $@
