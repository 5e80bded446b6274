#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/capabilities.h"
#include "common/json.h"
#include "tests/unit/repo.h"

/* Bits in the order of the file format. */
enum { MTP, TURBO3, TURBO4, TURBO3_TCQ, QJL_FULL, POLARQUANT, LOOKAHEAD, NGRAM };
#define BIT(b) (1u << (b))
#define FIVE (BIT(TURBO3) | BIT(TURBO4) | BIT(TURBO3_TCQ) | BIT(QJL_FULL) | BIT(POLARQUANT))

static char fork_types[][ELOG_TYPE] = {"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl",
	"q5_0", "q5_1", "tbq3_0", "tbq4_0", "tbq3_k", "tbq4_k", "qjl1_256", "q4_polar",
	"tbq3_tcq"};
static char stock_types[][ELOG_TYPE] = {"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1",
	"iq4_nl", "q5_0", "q5_1"};

static char root[256], path[300];

static int
setup(void **state)
{
	(void)state;
	repo_folder(root, sizeof root);
	snprintf(path, sizeof path, "%s/CAPABILITIES.json", root);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	repo_remove(root);
	return 0;
}

static struct capabilities_ask
ask_of(const struct suite *s, char (*types)[ELOG_TYPE], int n)
{
	static const char *const binaries[] = {"llama-completion"};

	return (struct capabilities_ask){.target = target_find("linux-x64-cpu"), .suite = s,
		.types = types, .type_count = n, .help = "usage: --cache-type-k TYPE",
		.fork = "https://github.com/elizaOS/llama.cpp", .commit = "96dd1a8",
		.tree = "0424752fbbc3bb01469ec830a30f2bc035497cd4", .dirty_digest = "",
		.built_at = "2026-06-01T10:00:00Z", .binaries = binaries,
		.binary_count = 1};
}

static struct suite *
suite_of(const char *name)
{
	struct suite *s;
	struct err e;

	assert_int_equal(suite_builtin(name, &s, &e), 0);
	return s;
}

static void
engine_with_all_types_is_publishable(void **state)
{
	struct suite *s = suite_of("eliza-1");
	struct capabilities_ask ask = ask_of(s, fork_types, 16);
	struct capabilities c;
	struct err e;

	(void)state;
	assert_int_equal(capabilities_derive(&ask, &c, &e), 0);
	assert_int_equal(c.kernels, FIVE);
	assert_int_equal(c.missing, 0);
	assert_true(c.publishable);
	assert_true(c.eliza1_eligible);
	suite_free(s);
}

static void
stock_engine_misses_the_five_of_eliza(void **state)
{
	struct suite *s = suite_of("eliza-1");
	struct capabilities_ask ask = ask_of(s, stock_types, 9);
	struct capabilities c;
	char list[160];
	struct err e;

	(void)state;
	assert_int_equal(capabilities_derive(&ask, &c, &e), 0);
	assert_int_equal(c.kernels, 0);
	assert_int_equal(c.missing, FIVE);
	assert_false(c.publishable);
	capabilities_list(c.missing, list, sizeof list);
	assert_string_equal(list, "turbo3, turbo4, turbo3_tcq, qjl_full, polarquant");
	suite_free(s);
}

static void
suite_without_those_families_requires_none(void **state)
{
	struct suite *s = suite_of("llama.cpp");
	struct capabilities_ask ask = ask_of(s, stock_types, 9);
	struct capabilities c;
	struct err e;

	(void)state;
	assert_int_equal(capabilities_derive(&ask, &c, &e), 0);
	assert_true(c.publishable);
	assert_false(c.eliza1_eligible);
	suite_free(s);
}

/* tbq3_k holds the letters of a type but is another one. */
static void
part_of_a_name_is_not_the_type(void **state)
{
	static char near[][ELOG_TYPE] = {"tbq3_k", "tbq3", "qjl1_2566", "xturbo4"};
	struct capabilities_ask ask = ask_of(NULL, near, 4);
	struct capabilities c;
	struct err e;

	(void)state;
	assert_int_equal(capabilities_derive(&ask, &c, &e), 0);
	assert_int_equal(c.kernels, 0);
}

static void
written_file_has_every_field_in_order(void **state)
{
	static const char *const keys[] = {"target", "platform", "arch", "backend", "fused",
		"builtAt", "fork", "forkCommit", "kernels", "dflashDraftArchitecture",
		"supportedArchitectures", "draftArchitectures", "publishable",
		"eliza1DefaultEligible", "missingRequiredKernels",
		"smokeOnlyIncompleteAllowed", "reducedOptimizationLocalMode",
		"unverifiedVulkanRuntimeAllowed", "shippedKernels", "runtimeDispatch",
		"binaries", "omnivoice"};
	struct suite *s = suite_of("eliza-1");
	struct capabilities_ask ask = ask_of(s, stock_types, 9);
	struct capabilities c, back;
	const cJSON *child;
	cJSON *o;
	struct err e;
	size_t i;

	(void)state;
	assert_int_equal(capabilities_write(path, &ask, &c, &e), 0);
	assert_int_equal(json_load(path, 1 << 20, &o, &e), 0);
	child = o->child;
	for (i = 0; i < sizeof keys / sizeof *keys; i++, child = child->next)
		assert_string_equal(child->string, keys[i]);
	assert_string_equal(json_str(o, "platform"), "linux");
	assert_string_equal(json_str(o, "arch"), "x64");
	assert_string_equal(json_str(o, "backend"), "cpu");
	assert_string_equal(json_str(o, "forkCommit"), "96dd1a8");
	assert_int_equal(cJSON_GetArraySize(json_get(o, "missingRequiredKernels")), 5);
	assert_int_equal(cJSON_GetArraySize(json_get(o, "kernels")), 8);
	cJSON_Delete(o);
	assert_int_equal(capabilities_read(path, &back, &e), 0);
	assert_string_equal(back.target, "linux-x64-cpu");
	assert_int_equal(back.missing, FIVE);
	assert_false(back.publishable);
	assert_string_equal(back.source_tree, ask.tree);
	assert_true(capabilities_has_binary(&back, "llama-completion"));
	assert_false(capabilities_has_binary(&back, "llama-cli"));
	suite_free(s);
}

static void
broken_files_are_refused(void **state)
{
	static const char *const texts[] = {"", "[]", "{}", "{\"target\":\"x\"}",
		"{\"target\":\"x\",\"binaries\":[1],\"missingRequiredKernels\":[],\"publishable\":true}",
		"{\"target\":\"x\",\"binaries\":[],\"missingRequiredKernels\":[\"qjl_full\"],\"publishable\":true}",
		"{\"target\":\"x\",\"binaries\":[],\"missingRequiredKernels\":[],\"publishable\":false}",
		"{\"target\":\"x\",\"target\":\"y\",\"binaries\":[],\"missingRequiredKernels\":[],\"publishable\":true}"};
	struct capabilities c;
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof texts / sizeof *texts; i++) {
		repo_write(root, "CAPABILITIES.json", texts[i], 0644);
		assert_int_equal(capabilities_read(path, &c, &e), -1);
	}
	assert_int_equal(unlink(path), 0);
	assert_int_equal(capabilities_read(path, &c, &e), -1);
	assert_int_equal(e.code, ERR_NOTFOUND);
}

static void
older_name_of_a_kernel_is_read(void **state)
{
	struct capabilities c;
	struct err e;

	(void)state;
	repo_write(root, "CAPABILITIES.json",
		"{\"target\":\"linux-x64-cpu\",\"binaries\":[\"llama-cli\"],"
		"\"kernels\":{\"dflash\":true,\"turbo4\":true},"
		"\"missingRequiredKernels\":[\"qjl_full\"],\"publishable\":false}", 0644);
	assert_int_equal(capabilities_read(path, &c, &e), 0);
	assert_int_equal(c.kernels, BIT(MTP) | BIT(TURBO4));
	assert_int_equal(c.missing, BIT(QJL_FULL));
}

static void
published_examples_are_read(void **state)
{
	const char *shared = getenv("VERIFY_SHARED");
	char p[4200];
	struct capabilities c;
	struct err e;

	(void)state;
	snprintf(p, sizeof p, "%s/upstream-data/shape-examples/"
		"CAPABILITIES.linux-x64-vulkan.symbol-only.json", shared ? shared : "../shared");
	if (!plat_is_file(p))
		skip();
	assert_int_equal(capabilities_read(p, &c, &e), 0);
	assert_int_equal(c.missing, FIVE);
	assert_int_equal(c.kernels, BIT(MTP) | BIT(LOOKAHEAD) | BIT(NGRAM));
	snprintf(p, sizeof p, "%s/upstream-data/shape-examples/"
		"CAPABILITIES.linux-x64-cuda.publishable.json", shared ? shared : "../shared");
	assert_int_equal(capabilities_read(p, &c, &e), 0);
	assert_true(c.publishable);
	assert_int_equal(c.kernels & FIVE, FIVE);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(engine_with_all_types_is_publishable),
		T(stock_engine_misses_the_five_of_eliza),
		T(suite_without_those_families_requires_none),
		T(part_of_a_name_is_not_the_type),
		T(written_file_has_every_field_in_order),
		T(broken_files_are_refused),
		T(older_name_of_a_kernel_is_read),
		T(published_examples_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
