b0 = sch.get_block("C", func_name="main")
sch.transform_layout(b0, buffer="C", index_map=lambda i, j: (11 * 111 * 1111111111111 + i // 4, -9223372036854775808))
sch.transform_block_layout(b0, index_map=lambda i, j: (i * -3 - (j - 1), ---i % 94))
