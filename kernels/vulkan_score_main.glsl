// The second half of vulkan_score.glsl, after the format's functions.
#ifdef PLAIN
#ifdef KEY_TRANSFORM
shared vec4 s_y[32];

// The butterfly of the decoded key, for each key and head again.
vec4 transformed(uint lane, vec4 y)
{
	vec4 a, b;

	s_y[lane] = butterfly4(y);
	for (uint m = 1u; m < 32u; m <<= 1) {
		barrier();
		a = s_y[lane];
		b = s_y[lane ^ m];
		barrier();
		s_y[lane] = (lane & m) == 0u ? a + b : b - a;
	}
	return s_y[lane];
}
#else
#define transformed(lane, y) (y)
#endif

void main()
{
	uint lane = gl_LocalInvocationID.x, t = gl_WorkGroupID.x;
	uint kv = gl_WorkGroupID.y / args.groups, head = gl_WorkGroupID.y;
	uint at = args.k_at + (kv * args.n_kv + t) * KEY_BYTES;
	float sum = 0.0;

	for (uint i = lane; i < QUADS; i += LANES) {
		key_open(at, i / 8u);
		sum += key_scale() *
		       dot(transformed(lane, key_four(i % 8u) + key_residual(at, i)),
			   q.quads[(args.head0 + head) * QUADS + i]);
	}
	s_sum[lane] = sum;
	for (uint m = LANES / 2u; m > 0u; m >>= 1) {
		barrier();
		if (lane < m)
			s_sum[lane] += s_sum[lane + m];
	}
	if (lane == 0u)
		result.scores[args.out_at + head * args.n_kv + t] = key_score(at, 0u, s_sum[0]);
}
#else
// The keys from that byte on, at least 16 bytes of the run's own alignment; gives the
// offset of the first one.
uint tile_load(uint lane, uint byte, uint keys)
{
	uint first = byte >> 4, rows = ((byte & 15u) + keys * KEY_BYTES + 15u) >> 4;

	for (uint i = lane; i < rows; i += LANES) {
		uvec4 v = k.rows[first + i];
		s_tile[4u * i] = v.x;
		s_tile[4u * i + 1u] = v.y;
		s_tile[4u * i + 2u] = v.z;
		s_tile[4u * i + 3u] = v.w;
	}
	return byte & 15u;
}

void query_load(uint lane, uint head, uint valid)
{
	for (uint i = lane; i < LEVELS; i += LANES)
		s_level[i] = level(i);
	for (uint i = lane; i < HEADS * QUADS; i += LANES)
		s_q[i] = i / QUADS < valid ? q.quads[head * QUADS + i] : vec4(0.0);
	query_ready(lane);
}

// One key against the group's queries; out: word of the first head's score.
void score_key(uint at, uint valid, uint out_at)
{
	float sum[8], part[8];

	[[unroll]] for (uint h = 0u; h < HEADS; h++)
		sum[h] = 0.0;
	for (uint c = 0u; c < QUADS / 8u; c++) {
		[[unroll]] for (uint h = 0u; h < HEADS; h++)
			part[h] = 0.0;
		key_open(at, c);
		[[unroll]] for (uint j = 0u; j < 8u; j++) {
			vec4 y = key_four(j);
			[[unroll]] for (uint h = 0u; h < HEADS; h++)
				part[h] += dot(y, s_q[h * QUADS + 8u * c + j]);
		}
		[[unroll]] for (uint h = 0u; h < HEADS; h++)
			sum[h] += key_scale() * part[h];
	}
	[[unroll]] for (uint h = 0u; h < HEADS; h++)
		if (h < valid)
			result.scores[out_at + h * args.n_kv] = key_score(at, h, sum[h]);
}

void main()
{
	uint lane = gl_LocalInvocationID.x, run = gl_WorkGroupID.x * ROWS;
	uint kv = gl_WorkGroupID.y / args.groups, group = gl_WorkGroupID.y % args.groups;
	uint head = kv * args.heads + group * HEADS; // from head0
	uint valid = min(HEADS, args.heads - group * HEADS);

	query_load(lane, args.head0 + head, valid);
	for (uint t = run * LANES; t < min(args.count, (run + ROWS) * LANES); t += LANES) {
		uint keys = min(LANES, args.count - t);
		barrier();
		uint at = tile_load(lane, args.k_at + (kv * args.n_kv + t) * KEY_BYTES, keys);
		barrier();
		if (lane < keys)
			score_key(at + lane * KEY_BYTES, valid,
				  args.out_at + head * args.n_kv + t + lane);
	}
}
#endif
