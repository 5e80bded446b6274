#include <stdio.h>
#include <string.h>

#include "agent/build_impl.h"
#include "common/plat.h"

#define SCRIPT "verify-unity.cmake"
/* With many compilers at once, many small files end sooner than a few large ones. */
#define MAX_JOBS 12

/*
 * Half the time of a build of the engine goes into one small file per model architecture,
 * each reading the same large headers.  The script joins those files, sixteen at a time,
 * as cmake's unity builds do: same sources, same flags, same functions.  A file that
 * defines anything at its outermost level that could meet the same name in another
 * (static, namespace, using, macros, ...) is left alone.
 */
static const char script[] =
	"if(CMAKE_VERSION VERSION_LESS 3.19 OR DEFINED VERIFY_UNITY_SEEN)\n"
	"  return()\n"
	"endif()\n"
	"set(VERIFY_UNITY_SEEN 1)\n"
	"function(verify_unity)\n"
	"  if(NOT TARGET llama)\n"
	"    return()\n"
	"  endif()\n"
	"  get_target_property(dir llama SOURCE_DIR)\n"
	"  get_target_property(sources llama SOURCES)\n"
	"  set(joined 0)\n"
	"  foreach(f IN LISTS sources)\n"
	"    get_filename_component(p \"${f}\" ABSOLUTE BASE_DIR \"${dir}\")\n"
	"    set(own 1)\n"
	"    if(p MATCHES \"/models/[^/]*\\\\.(c|cpp)$\" AND EXISTS \"${p}\")\n"
	"      file(STRINGS \"${p}\" own REGEX\n"
	"        \"^(static|inline|namespace|using|template|struct|class|enum|union|typedef|"
	"constexpr|const|thread_local|#[ ]*(define|undef|pragma|if))\")\n"
	"    endif()\n"
	"    if(own)\n"
	"      set_property(SOURCE \"${f}\" TARGET_DIRECTORY llama\n"
	"        PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)\n"
	"    else()\n"
	"      math(EXPR joined \"${joined}+1\")\n"
	"    endif()\n"
	"  endforeach()\n"
	"  message(STATUS \"verify: ${joined} model sources are compiled together\")\n"
	"  if(joined GREATER 1)\n"
	"    set_target_properties(llama PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)\n"
	"  endif()\n"
	"endfunction()\n"
	"cmake_language(DEFER DIRECTORY \"${CMAKE_SOURCE_DIR}\" CALL verify_unity)\n";

int
build_unity_flag(const struct build_words *w, struct build_info *b, char *flag,
	size_t size, struct err *e)
{
	char path[BUILD_PATH + 32];
	int i;

	b->unity = b->jobs <= MAX_JOBS;
	for (i = 0; i < w->count; i++)
		if (strstr(w->v[i], "CMAKE_PROJECT_INCLUDE") != NULL ||
		    strstr(w->v[i], "UNITY") != NULL)
			b->unity = false; /* somebody else's business */
	if (!b->unity)
		return str_copy(flag, size, BUILD_UNITY_OFF, e);
	snprintf(path, sizeof path, "%s/" SCRIPT, b->folder);
	if (plat_write_file(path, script, sizeof script - 1, 0644, e))
		return -1;
	return str_fmt(flag, size, e, "-DCMAKE_PROJECT_INCLUDE=%s", path);
}
