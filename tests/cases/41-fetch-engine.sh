# The engine source: kept once it is there, refused when it is not the pinned bytes, and a
# clear word when npm is missing or can not get it.  No network: npm is a stand-in.
# shellcheck shell=sh disable=SC2154

mkdir -p "$T/fake" "$T/few" "$T/make/package/llama" "$T/out"
for tool in sh sed uname dirname mkdir mktemp rm mv cat head tail sha256sum tar gzip; do
	ln -s "$(command -v "$tool")" "$T/few/$tool"
done
fetch() { "$root/deploy/fetch-engine" "$@" >"$T/said" 2>"$T/err"; }

PATH=$T/few fetch; status 77 $? "without npm"
has "$T/err" "npm is not installed"

cat >"$T/fake/npm" <<'END'
#!/bin/sh
echo "$*" >>"$T/npm.calls"
[ -f "$T/package.tgz" ] || { echo "npm error code ECONNREFUSED" >&2; exit 1; }
while [ "$1" != --pack-destination ]; do shift; done
cp "$T/package.tgz" "$2/package.tgz" && echo package.tgz
END
chmod +x "$T/fake/npm"
export T
PATH=$T/fake:$PATH

fetch; status 77 $? "an unreachable registry"
has "$T/err" "npm can not get node-llama-cpp@3.21.1" ECONNREFUSED
has "$T/npm.calls" "node-llama-cpp@3.21.1"

echo "not the bundle" >"$T/make/package/llama/gitRelease.bundle"
tar -czf "$T/package.tgz" -C "$T/make" package
fetch; status 4 $? "other bytes than the pinned ones"
has "$T/err" "not the pinned one"
[ -z "$(find "$XDG_CACHE_HOME" -type f)" ] || fail "refused bytes are not kept"
[ -z "$(find "$XDG_CACHE_HOME" -name 'fetch.*')" ] || fail "no folder is left behind"

fetch --unpack node-llama-cpp "$T/out"; status 0 $? "--unpack"
[ -f "$T/out/package/llama/gitRelease.bundle" ] || fail "--unpack unpacks"
fetch --wrong; status 2 $? "an unknown option"
fetch --unpack one; status 2 $? "--unpack with an argument too few"

rm -f "$T/package.tgz"
"$root/tests/prebuilt-engine" "$T/engine" cpu >"$T/said" 2>"$T/err"
case $(uname -s)-$(uname -m) in
Linux-x86_64 | Linux-aarch64) status 77 $? "a prebuilt engine without a registry" ;;
esac
[ ! -e "$T/engine" ] || fail "nothing is made"
"$root/tests/prebuilt-engine" "$T/engine" rocm 2>"$T/err"; status 2 $? "an unknown backend"
"$root/tests/prebuilt-engine" 2>"$T/err"; status 2 $? "no folder"
