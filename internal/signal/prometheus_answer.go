package signal

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// sampleMaxAge is how old the time of a sample may be: Prometheus itself looks back as far for a value that is still current.
const sampleMaxAge = 5 * time.Minute

// outcome is what one query came to, before it is put into words. Exactly one of the three holds: a value, empty, or a reason.
type outcome struct {
	value  float64
	empty  bool
	reason string
	// text says what happened, after the words that name who was asked. It never holds a part of the answer.
	text string
	// alive says that the answer held a current number, whatever else became of it.
	alive bool
}

func failed(reason, text string) outcome {
	return outcome{reason: reason, text: text}
}

// answer is the part of an answer of /api/v1/query that is looked at. Infos are left out: they say nothing about completeness.
type answer struct {
	Status    string `json:"status"`
	ErrorType string `json:"errorType"`
	Data      struct {
		ResultType string          `json:"resultType"`
		Result     json.RawMessage `json:"result"`
	} `json:"data"`
	Warnings []json.RawMessage `json:"warnings"`
}

// decode turns status and body of an answer into an outcome. It holds for arbitrary input.
func decode(status int, body []byte, now time.Time) outcome {
	var received answer
	parsed := json.Unmarshal(body, &received) == nil
	if status != http.StatusOK {
		return refused(status, received.ErrorType)
	}
	if !parsed {
		return failed(aiopsv1.ReasonMalformedAnswer, "answered with something that is not the JSON of a Prometheus")
	}
	switch received.Status {
	case "success":
		return decodeResult(received, now)
	case "error":
		return refused(http.StatusUnprocessableEntity, received.ErrorType)
	}
	return failed(aiopsv1.ReasonMalformedAnswer, "answered without saying whether the query succeeded")
}

// refused sorts the answers of a server that gives no result. Of the body only the error's type counts, and only if it is
// one that Prometheus documents.
func refused(status int, errorType string) outcome {
	code := strconv.Itoa(status)
	switch {
	case errorType == "timeout":
		return failed(aiopsv1.ReasonTimeout, "gave up on the query after its own timeout")
	case status == http.StatusTooManyRequests || status >= http.StatusInternalServerError:
		return failed(aiopsv1.ReasonServerError, "answered with an error of its own ("+code+")")
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return failed(aiopsv1.ReasonUnauthorized, "refused the operator's credentials ("+code+"): check the endpoint in the operator's configuration")
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		return failed(aiopsv1.ReasonQueryRejected, "has no query API there ("+code+"): the configured url must be the one that /api/v1/query is appended to")
	case status >= http.StatusBadRequest:
		return failed(aiopsv1.ReasonQueryRejected, "rejected the query ("+code+describe(errorType)+"): try it in its web interface")
	case status >= http.StatusMultipleChoices:
		return failed(aiopsv1.ReasonMalformedAnswer, "redirected the query ("+code+"): configure the url that it redirects to")
	}
	return failed(aiopsv1.ReasonMalformedAnswer, "answered with an unexpected status ("+code+")")
}

func describe(errorType string) string {
	switch errorType {
	case "bad_data":
		return ", it is not valid PromQL"
	case "execution":
		return ", it could not be evaluated"
	}
	return ""
}

func decodeResult(received answer, now time.Time) outcome {
	switch received.Data.ResultType {
	case "scalar":
		return complete(received, decodeValue(received.Data.Result, now))
	case "vector":
		return decodeVector(received, now)
	case "matrix":
		return failed(aiopsv1.ReasonMalformedAnswer, "answered with a range of values: remove the [...] or put a function such as rate() around it")
	case "string":
		return failed(aiopsv1.ReasonMalformedAnswer, "answered with a text: the query must yield a number")
	}
	return failed(aiopsv1.ReasonMalformedAnswer, "answered with a result of an unknown type")
}

func decodeVector(received answer, now time.Time) outcome {
	var elements []json.RawMessage
	if isNull(received.Data.Result) || json.Unmarshal(received.Data.Result, &elements) != nil {
		return malformedResult()
	}
	switch len(elements) {
	case 0:
		return complete(received, outcome{empty: true})
	case 1:
		return complete(received, decodeElement(elements[0], now))
	}
	many := failed(aiopsv1.ReasonManySamples, "answered with more than one series: aggregate them, for example with sum() or max()")
	many.alive = true
	return many
}

// complete withholds the outcome of an answer that warns: a warning means that something is missing from it.
func complete(received answer, result outcome) outcome {
	if len(received.Warnings) == 0 {
		return result
	}
	partial := failed(aiopsv1.ReasonPartialAnswer, "warned that its answer is incomplete")
	partial.alive = result.alive
	return partial
}

func decodeElement(element json.RawMessage, now time.Time) outcome {
	var sample struct {
		Value     json.RawMessage `json:"value"`
		Histogram json.RawMessage `json:"histogram"`
	}
	if json.Unmarshal(element, &sample) != nil {
		return malformedResult()
	}
	if isNull(sample.Value) && !isNull(sample.Histogram) {
		return failed(aiopsv1.ReasonNotANumber, "answered with a histogram: take a number of it, for example with histogram_quantile()")
	}
	return decodeValue(sample.Value, now)
}

func decodeValue(pair json.RawMessage, now time.Time) outcome {
	at, text, ok := decodePair(pair)
	if !ok {
		return malformedResult()
	}
	value, err := strconv.ParseFloat(text, 64)
	switch {
	case math.IsNaN(value) || math.IsInf(value, 0):
		return failed(aiopsv1.ReasonNotANumber, "answered with NaN or an infinity, as a division by zero does")
	case err != nil:
		return malformedResult()
	case float64(now.Unix())-at > sampleMaxAge.Seconds():
		return failed(aiopsv1.ReasonStale, "answered with a value that is older than "+sampleMaxAge.String())
	}
	return outcome{value: value, alive: true}
}

// decodePair reads a time and a value, as in [1700000000.123, "42"].
func decodePair(pair json.RawMessage) (at float64, text string, ok bool) {
	var parts []json.RawMessage
	if json.Unmarshal(pair, &parts) != nil || len(parts) != 2 || isNull(parts[0]) || isNull(parts[1]) {
		return 0, "", false
	}
	ok = json.Unmarshal(parts[0], &at) == nil && json.Unmarshal(parts[1], &text) == nil
	return at, text, ok
}

func malformedResult() outcome {
	return failed(aiopsv1.ReasonMalformedAnswer, "answered with a result that cannot be read")
}

func isNull(raw json.RawMessage) bool {
	return len(raw) == 0 || bytes.Equal(raw, []byte("null"))
}
