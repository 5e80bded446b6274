# The Vulkan dispatch smoke on a software device: refused, and with the switch for diagnosis it
# computes and is no pass either.  A real engine, built for Vulkan elsewhere, and lavapipe.
# shellcheck shell=sh disable=SC2154

[ -n "$(find /usr/share/vulkan/icd.d -name 'lvp_icd*' 2>/dev/null)" ] || skip "lavapipe is not installed"
engine=$cache/prebuilt-engine/vulkan
HOME=$user_home XDG_CACHE_HOME=${cache%/verify} "$root/tests/prebuilt-engine" "$engine" vulkan >"$T/prebuilt.log" 2>&1 || {
	rc=$?
	cat "$T/prebuilt.log"
	[ "$rc" -ne 77 ] || skip "no engine for Vulkan can be fetched here"
	fail "tests/prebuilt-engine"; exit 1
}
bundle=$(HOME=$user_home XDG_CACHE_HOME=${cache%/verify} "$root/deploy/fetch-engine" 2>"$T/err") ||
	skip "the engine's source can not be fetched here"
mkdir "$T/stock"
if ! git init -q --bare "$T/git" || ! git -C "$T/git" fetch -q "$bundle" HEAD ||
	! git -C "$T/git" archive -o "$T/src.tar" FETCH_HEAD || ! tar -xf "$T/src.tar" -C "$T/stock"; then
	fail "the bundle of the engine is not readable"
fi
VK_ICD_FILENAMES=$(find /usr/share/vulkan/icd.d -name 'lvp_icd*' | head -n 1)
export VK_ICD_FILENAMES
smoke() { timeout 240 "$bin/verify-agent" vulkan-dispatch-smoke --log-dir "$T/logs" --dir "$engine" --source "$T/stock" >"$T/out" 2>"$T/err"; }

# the engine hides software from itself
smoke; status 3 $? "no hardware"
has "$T/err" "blocked backend_not_present: the engine has no device Vulkan0"
lacks "$T/out" PASS
GGML_VK_VISIBLE_DEVICES=0 smoke; status 3 $? "software that was chosen"
has "$T/err" "blocked software_device: Vulkan0 is llvmpipe"
lacks "$T/out" PASS
ELIZA_ALLOW_SOFTWARE_VULKAN=1 smoke; status 3 $? "software for diagnosis, an engine without the ops"
has "$T/err" "blocked op_not_in_engine: 6 of 6 routes"
has "$T/out" "device=llvmpipe" "MISSING GGML_OP_ATTN_SCORE_QJL"
# a source that it was not built from
echo "/* another */" >>"$T/stock/ggml/include/ggml.h"
smoke; status 3 $? "another source"
has "$T/err" "blocked stale_binary: the engine was built from tree"
