// The second half of vulkan_fused.glsl, after the format's functions.
#ifdef PLAIN
float total(uint lane, float v)
{
	float sum;

	s_sum[lane] = v;
	for (uint m = LANES / 2u; m > 0u; m >>= 1) {
		barrier();
		if (lane < m)
			s_sum[lane] += s_sum[lane + m];
	}
	barrier();
	sum = s_sum[0];
	barrier();
	return sum;
}

// The butterfly over 4 * fours elements of the value, for each key and head again.
vec4 transformed(uint lane, vec4 y, uint fours)
{
	vec4 a, b;

	s_y[lane] = butterfly4(y);
	for (uint m = 1u; m < fours; m <<= 1) {
		barrier();
		a = s_y[lane];
		b = s_y[lane ^ m];
		barrier();
		s_y[lane] = (lane & m) == 0u ? a + b : b - a;
	}
	return s_y[lane];
}

uint key_word(uint at)
{
	return word_of(k.words[at >> 2], k.words[(at >> 2) + 1u], at);
}

float logit(uint lane, uint head, uint at)
{
	float sum = 0.0;

	for (uint i = lane; i < QUADS; i += LANES)
		sum += dot(signs_of(key_word(at + 4u * (i >> 3)) >> (4u * (i & 7u))),
			   q.quads[(args.head0 + head) * QUADS + i]);
	sum = total(lane, sum);
	at += 32u;
	return QJL_SCALE *
	       brain_value((k.words[at >> 2] >> ((at & 2u) * 8u)) & 0xffffu) * sum *
	       args.sm_scale;
}

void main()
{
	uint lane = gl_LocalInvocationID.x, head = gl_WorkGroupID.x, kv = head / args.heads;
	float most = MINUS_INFINITY, sum = 0.0;
	vec4 acc = vec4(0.0);
	bool any = false;

	for (uint t = 0u; t < args.count; t++) {
		float raw = logit(lane, head, args.k_at + (kv * args.n_kv + t) * KEY_BYTES);
		float next = is_nan(raw) ? most : max(most, raw);
		float fade = next == most ? 1.0 : weight(most, next), w = weight(raw, next);
		any = any || is_finite(raw);
		sum = sum * fade + w;
		acc = acc * fade + w * value_real(lane, args.v_at +
						  (kv * args.n_kv + t) * VALUE_BYTES);
		most = next;
	}
	for (uint i = 0u; i < 4u; i++)
		result.values[args.out_at + head * 128u + 4u * lane + i] =
			any ? acc[i] / sum : 0.0;
}
#else
#define TILE_LOAD(name, from, bytes)                                                \
uint name(uint lane, uint byte, uint keys)                                          \
{                                                                                   \
	uint first = byte >> 4, rows = ((byte & 15u) + keys * (bytes) + 15u) >> 4;  \
                                                                                    \
	for (uint i = lane; i < rows; i += LANES) {                                 \
		uvec4 row = from.rows[first + i];                                   \
		s_tile[4u * i] = row.x;                                             \
		s_tile[4u * i + 1u] = row.y;                                        \
		s_tile[4u * i + 2u] = row.z;                                        \
		s_tile[4u * i + 3u] = row.w;                                        \
	}                                                                           \
	return byte & 15u;                                                          \
}
TILE_LOAD(keys_load, k, KEY_BYTES)
TILE_LOAD(values_load, v, VALUE_BYTES)

float logit(uint at, uint h)
{
	float sum = 0.0;

	for (uint c = 0u; c < QUADS / 8u; c++) {
		uint bits = load32(at + 4u * c);
		[[unroll]] for (uint j = 0u; j < 8u; j++)
			sum += dot(signs_of(bits >> (4u * j)), s_q[h * QUADS + 8u * c + j]);
	}
	return QJL_SCALE * brain_value(load16(at + 32u)) * sum * args.sm_scale;
}

// Logits of the tile's keys, and which heads have a finite one.
void logits(uint lane, uint at, uint keys)
{
	for (uint i = lane; i < TILE * HEADS; i += LANES) {
		uint key = i % TILE, h = i / TILE;
		float raw = MINUS_INFINITY;
		if (key < keys) {
			raw = logit(at + key * KEY_BYTES, h);
			if (is_finite(raw))
				atomicOr(s_any[h], 1u);
		}
		s_weight[key * HEADS + h] = raw;
	}
}

// Maximum of each head, 16 lanes a head, and how much what was summed before fades.
void maxima(uint lane)
{
	uint h = lane >> 4;
	float most = MINUS_INFINITY;

	if (h < HEADS)
		for (uint key = lane & 15u; key < TILE; key += 16u) {
			float raw = s_weight[key * HEADS + h];
			most = is_nan(raw) ? most : max(most, raw);
		}
	s_part[lane] = most;
	barrier();
	if (lane < HEADS) {
		most = s_max[lane];
		for (uint i = 0u; i < 16u; i++)
			most = max(most, s_part[16u * lane + i]);
		s_fade[lane] = most == s_max[lane] ? 1.0 : weight(s_max[lane], most);
		s_max[lane] = most;
	}
	barrier();
}

// Logits to weights; gives the sum of this lane's sixteenth of its head.
float weights(uint lane)
{
	uint h = lane >> 4;
	float sum = 0.0;

	for (uint i = lane; i < TILE * HEADS; i += LANES)
		s_weight[i] = weight(s_weight[i], s_max[i % HEADS]);
	barrier();
	if (h < HEADS)
		for (uint key = lane & 15u; key < TILE; key += 16u)
			sum += s_weight[key * HEADS + h];
	return sum;
}

void main()
{
	uint lane = gl_LocalInvocationID.x;
	uint kv = gl_WorkGroupID.y / args.groups, group = gl_WorkGroupID.y % args.groups;
	uint head = kv * args.heads + group * HEADS, valid = min(HEADS, args.heads - group * HEADS);
	uint from = gl_WorkGroupID.x * args.per, to = min(args.count, from + args.per);
	float acc[8], sum = 0.0;

	[[unroll]] for (uint h = 0u; h < HEADS; h++)
		acc[h] = 0.0;
	for (uint i = lane; i < LEVELS; i += LANES)
		s_level[i] = level(i);
	for (uint i = lane; i < HEADS * QUADS; i += LANES)
		s_q[i] = i / QUADS < valid ? q.quads[(args.head0 + head) * QUADS + i] : vec4(0.0);
	if (lane < 8u) {
		s_max[lane] = MINUS_INFINITY;
		s_any[lane] = 0u;
	}
	for (uint t = from; t < to; t += TILE) {
		uint keys = min(TILE, to - t), key0 = kv * args.n_kv + t, at;
		barrier();
		at = keys_load(lane, args.k_at + key0 * KEY_BYTES, keys);
		barrier();
		logits(lane, at, keys);
		barrier();
		at = values_load(lane, args.v_at + key0 * VALUE_BYTES, keys);
		maxima(lane);
		sum = sum * s_fade[(lane >> 4) % HEADS] + weights(lane);
		[[unroll]] for (uint h = 0u; h < HEADS; h++)
			acc[h] *= s_fade[h];
		for (uint i = 0u; i < keys; i++) {
			float y = value_at(at + i * VALUE_BYTES, lane);
			[[unroll]] for (uint h = 0u; h < HEADS; h++)
				acc[h] += s_weight[i * HEADS + h] * y;
		}
	}
	barrier();
	s_part[lane] = sum;
	barrier();
	for (uint h = 0u; h < valid; h++)
		result.values[args.out_at + ((head + h) * args.splits + args.split0 +
					     gl_WorkGroupID.x) * PART + lane] = acc[h];
	if (lane < valid) {
		uint at = args.out_at + ((head + lane) * args.splits + args.split0 +
					 gl_WorkGroupID.x) * PART + 128u;
		sum = 0.0;
		for (uint i = 0u; i < 16u; i++)
			sum += s_part[16u * lane + i];
		result.values[at] = s_max[lane];
		result.values[at + 1u] = sum;
		result.values[at + 2u] = float(s_any[lane]);
	}
}
#endif
