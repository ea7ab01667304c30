"""MLflow's own server application over a database, for tests: `python mlflow_server.py <database URI> <port>`.

`mlflow-skinny` has the application and lacks what `mlflow server` starts it with. pandas, which the application imports for pages about
traces and no handler of the registry uses, is stood in for.
"""

import os
import sys
from unittest.mock import MagicMock

if __name__ == "__main__":
    uri, port = sys.argv[1], int(sys.argv[2])
    os.environ |= {"_MLFLOW_SERVER_FILE_STORE": uri, "_MLFLOW_SERVER_ARTIFACT_ROOT": "mlflow-artifacts:/", "MLFLOW_DISABLE_TELEMETRY": "true"}
    sys.modules["pandas"] = MagicMock(name="pandas")
    from mlflow.server import app

    app.run("127.0.0.1", port)
