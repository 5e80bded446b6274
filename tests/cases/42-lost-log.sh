# A program that never joins its log thread loses its last line; preloaded, it does not.
# (tests/fake/late_log.c is a fake of that one fault of a real engine.)
cc -o "$T/late" "$root/tests/fake/late_log.c" -lpthread || fail "the fake does not build"
"$T/late" 2>"$T/without"; status 0 $? "without the library"
lacks "$T/without" "line 4"
LD_PRELOAD=$bin/preload/linger.so "$T/late" 2>"$T/with"; status 0 $? "with the library"
has "$T/with" "line 0" "line 4"
