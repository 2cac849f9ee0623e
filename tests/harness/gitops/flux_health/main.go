// What Flux says of objects: read from standard input as JSON, one per line; one line of answer each.
//
// Without an argument by the rules of kstatus; with one, an entry of a Kustomization's healthCheckExprs as JSON, by that.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling/statusreaders"
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func main() {
	ctx := context.Background()
	reader := statusreaders.NewGenericStatusReader(nil, status.Compute)
	if len(os.Args) > 1 {
		var expressions kustomize.CustomHealthCheck
		if err := json.Unmarshal([]byte(os.Args[1]), &expressions); err != nil {
			log.Fatal(err)
		}
		evaluator, err := cel.NewStatusEvaluator(&expressions.HealthCheckExpressions)
		if err != nil {
			log.Fatal(err)
		}
		kind := schema.FromAPIVersionAndKind(expressions.APIVersion, expressions.Kind).GroupKind()
		reader = cel.NewStatusReader(ctx, nil, kind, evaluator)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var object unstructured.Unstructured
		if err := object.UnmarshalJSON(lines.Bytes()); err != nil {
			log.Fatal(err)
		}
		if kind := object.GroupVersionKind().GroupKind(); !reader.Supports(kind) {
			log.Fatalf("the expressions are not those of %s", kind)
		}
		result, err := reader.ReadStatusForObject(ctx, nil, &object)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(result.Status)
	}
}
