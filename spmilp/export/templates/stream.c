uint32_t @NAME@_inferences = UINT32_MAX / 2U;
uint32_t @NAME@_turns[sizeof @NAME@_turns / sizeof @NAME@_turns[0]];

