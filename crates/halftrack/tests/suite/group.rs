//! GROUP: the predicted group end to end, over bad networks.
