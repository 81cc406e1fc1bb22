// The page. Until there is a better one, the client alone.

import "./harness";
