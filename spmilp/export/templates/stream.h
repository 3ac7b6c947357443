/* How many inferences there are, less than 2^31, to be set before lists begin; and the turn of each
   list: in turn t it works for inferences t, t - 1 and so on, of which it passes over those that
   there are not. */
extern uint32_t @NAME@_inferences;
extern uint32_t @NAME@_turns[@LISTS@U];

