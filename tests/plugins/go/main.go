// A plugin of generation B that uses the message types of the original's SDK and refuses unknown
// members, as the SDK does. `make soak` builds and runs it.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/reginald-project/reginald-sdk-go/api"
)

const name = "strict"

func main() {
	input := bufio.NewReader(os.Stdin)
	for {
		request := &api.Request{}
		if err := decode(content(input), request); err != nil {
			stop(err)
		}
		if request.Method == api.MethodExit {
			return
		}
		if request.ID == nil || request.ID.Null {
			continue
		}
		result, failure := answer(request)
		reply := api.Response{JSONRPC: api.JSONRPCVersion, ID: *request.ID, Error: failure}
		if failure == nil {
			reply.Result = encode(result)
		}
		send(reply)
	}
}

func answer(request *api.Request) (any, *api.Error) {
	switch request.Method {
	case api.MethodHandshake:
		asked := api.HandshakeParams{}
		if err := decode(request.Params, &asked); err != nil {
			return nil, &api.Error{Code: api.CodeInvalidParams, Message: "invalid params", Data: err.Error()}
		}
		if asked != api.DefaultHandshakeParams() {
			return nil, &api.Error{Code: api.CodeHandshakeError, Message: "handshake error"}
		}
		return api.HandshakeResult{Name: name, Handshake: asked.Handshake}, nil
	case api.MethodRunCommand:
		asked := api.RunCommandParams{}
		if err := decode(request.Params, &asked); err != nil {
			return nil, &api.Error{Code: api.CodeInvalidParams, Message: "invalid params", Data: err.Error()}
		}
		return run(asked)
	case api.MethodRunTask:
		asked := api.RunTaskParams{}
		if err := decode(request.Params, &asked); err != nil {
			return nil, &api.Error{Code: api.CodeInvalidParams, Message: "invalid params", Data: err.Error()}
		}
		for _, pair := range asked.Config {
			fmt.Fprintln(os.Stderr, pair.Key, pair.Type, pair.Val)
		}
		return struct{}{}, nil
	case api.MethodShutdown:
		return true, nil
	default:
		return nil, &api.Error{Code: api.CodeMethodNotFound, Message: "method not found", Data: request.Method}
	}
}

func run(asked api.RunCommandParams) (any, *api.Error) {
	switch asked.Cmd {
	case "greet":
		if err := greet(asked.Config, asked.PluginConfig); err != nil {
			return nil, &api.Error{Code: api.CodeCommandError, Message: "command error", Data: err.Error()}
		}
		return struct{}{}, nil
	case "group":
		return nil, &api.Error{Code: api.CodeCommandNotRunnable, Message: "command not runnable", Data: asked.Cmd}
	case "fail":
		return nil, &api.Error{Code: api.CodeCommandError, Message: "command error", Data: "it broke"}
	default:
		return nil, &api.Error{Code: api.CodeInvalidCommand, Message: "invalid command", Data: "unknown command: " + asked.Cmd}
	}
}

func greet(config, own api.KeyValues) error {
	whom, one := config.Get("name")
	often, two := config.Get("times")
	shout, three := config.Get("loud")
	tagged, four := config.Get("tags")
	word, five := own.Get("greeting")
	if !(one && two && three && four && five) {
		return errors.New("a value is missing")
	}
	person, err1 := whom.String()
	times, err2 := often.Int()
	loud, err3 := shout.Bool()
	tags, err4 := tagged.StringSlice()
	greeting, err5 := word.String()
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return err
	}
	text := fmt.Sprintf("%s %s!", greeting, person)
	if loud {
		text = strings.ToUpper(text)
	}
	said := api.LogParams{
		Time:    time.Now(),
		Level:   slog.LevelInfo + 1,
		Message: fmt.Sprintf("%s x%d %v", text, times, tags),
		Attrs:   []api.LogAttr{{Key: "attempt", Value: encode([]api.LogAttr{{Key: "deep", Value: encode(1)}})}},
	}
	send(api.Request{JSONRPC: api.JSONRPCVersion, Method: api.MethodLog, Params: encode(said)})
	return nil
}

func content(input *bufio.Reader) []byte {
	length := 0
	for {
		line, err := input.ReadString('\n')
		if err != nil {
			stop(err)
		}
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			break
		}
		field, value, _ := strings.Cut(line, ":")
		if strings.EqualFold(field, "Content-Length") {
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				stop(err)
			}
		}
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(input, body); err != nil {
		stop(err)
	}
	return body
}

func decode(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

func encode(value any) json.RawMessage {
	data, err := json.Marshal(value)
	if err != nil {
		stop(err)
	}
	return data
}

func send(message any) {
	data := encode(message)
	fmt.Printf("Content-Length: %d\r\n\r\n%s", len(data), data)
}

func stop(err error) {
	fmt.Fprintln(os.Stderr, name, "ends:", err)
	os.Exit(1)
}
