#!/bin/sh
# A telex plugin in POSIX shell: one command, one type of task, no dependency.
#
#   telex plugin check ./greet
#
# Messages are read from standard input and written to standard output, as JSON-RPC after a
# Content-Length header. Standard error is for people. Change the part "Features"; the rest is JSON
# and framing, with nothing but the shell, dd, tr and sed.

LC_ALL=C # one character is one byte, also for ${#text}
export LC_ALL
CR=$(printf '\r')
NL='
'

# --- Features ------------------------------------------------------------------------------------

NAME=greet

introduction() {
	cat <<-'JSON'
		"version": "1",
		"description": "Greets, and writes files.",
		"commands": [{"name": "hello", "usage": "hello", "description": "Say hello.", "configs": [
		{"key": "name", "value": "world", "type": "string", "description": "whom to greet"},
		{"key": "loud", "value": false, "type": "bool", "description": "in capitals"}]}],
		"tasks": [{"type": "write", "description": "Write a file.", "configs": [
		{"key": "path", "type": "path", "description": "which file"},
		{"key": "text", "value": "", "type": "string", "description": "what to write"}]}]
	JSON
}

hello() {
	greeting="Hello, ${config_name:-world}!"
	if [ "$config_loud" = true ]; then
		greeting=$(printf %s "$greeting" | tr '[:lower:]' '[:upper:]')
	fi
	log info "$greeting"
}

write_file() { # in the directory $1
	case $config_path in
	/*) file=$config_path ;;
	*) file=$1/$config_path ;;
	esac
	printf %s "$config_text" 2>/dev/null >"$file" && log info "wrote $file"
}

# Handle a request, or a notification if id is empty. The method is in $method, and the parameters
# are in the variables that `take` sets.
answer() {
	case $method in
	exit) [ -n "$closing" ] && exit 0 || exit 1 ;;
	esac
	[ -n "$id" ] || return 0
	case $closing$method in
	1*) failure -32803 "The plugin is shutting down." ;;
	handshake)
		if [ "$protocol" = rpp ] && [ "$version" = 0 ]; then
			introduced=1
			result "{\"protocol\": \"rpp\", \"protocolVersion\": 0, \"name\": \"$NAME\", $(introduction)}"
		else
			failure -32001 "This plugin speaks rpp version 0."
		fi
		;;
	shutdown) closing=1 && result '{}' ;;
	initialize)
		[ -n "$introduced" ] || { failure -32802 "First comes the handshake." && return; }
		ready=1 && result '{}'
		;;
	setupCommand | runCommand | validateTask | runTask)
		[ -n "$ready" ] || { failure -32802 "The plugin has not been initialised." && return; }
		give
		;;
	*) failure -32601 "There is no such method." ;;
	esac
}

give() {
	case $method:$name in
	setupCommand:hello)
		set_name=$config_name set_loud=$config_loud
		result '{}'
		;;
	runCommand:hello)
		config_name=${config_name:-$set_name} config_loud=${config_loud:-$set_loud}
		set_name= set_loud=
		hello && result '{}' || failure -32004 "The greeting could not be printed."
		;;
	setupCommand:* | runCommand:*) failure -32002 "There is no such command." ;;
	*) give_task ;;
	esac
}

give_task() {
	case $method:$type in
	*Task:write)
		if [ -z "$config_path" ]; then
			failure -32050 "path: say which file to write."
		elif [ "$method" = validateTask ]; then
			result '{}'
		elif write_file "${dir:-.}"; then
			result '{}'
		else
			failure -32005 "The file could not be written."
		fi
		;;
	*) failure -32602 "There is no such type of task." ;;
	esac
}

# --- Messages ------------------------------------------------------------------------------------

send() {
	printf 'Content-Length: %d\r\n\r\n%s' "${#1}" "$1"
}

result() {
	send "{\"jsonrpc\": \"2.0\", \"id\": $id, \"result\": $1}"
}

failure() {
	send "{\"jsonrpc\": \"2.0\", \"id\": ${id:-null}, \"error\": {\"code\": $1, \"message\": \"$2\"}}"
}

log() {
	escape "$2"
	send "{\"jsonrpc\": \"2.0\", \"method\": \"log\", \"params\": {\"level\": \"$1\", \"msg\": \"$escaped\"}}"
}

# Read one message into $body. False at EOF. `read` reads byte by byte from a pipe, so dd starts
# right after the header.
receive() {
	length= body= line=.
	while [ -n "$line" ]; do
		IFS= read -r line || return 1
		line=${line%"$CR"}
		case $line in
		[Cc]ontent-[Ll]ength:*) length=${line#*:} && length=${length#"${length%%[! ]*}"} ;;
		esac
	done
	case $length in
	'' | *[!0-9]*) return 0 ;;
	esac
	body=$(dd ibs=1 obs=65536 count="$length" 2>/dev/null && echo .)
	body=${body%?}
	[ "${#body}" -eq "$length" ]
}

# --- JSON ----------------------------------------------------------------------------------------

# The message is parsed once, from left to right. $path is the current position: {params{config[{key
# is the key of an entry of the configuration. Each scalar is passed to `take`, with its raw text.

take() {
	case $1 in
	'{jsonrpc') jsonrpc=$2 ;;
	'{id') id=$2 ;;
	'{method') has_method=1 && unquote "$2" && method=$text ;;
	'{params{protocol') unquote "$2" && protocol=$text ;;
	'{params{protocolVersion') version=$2 ;;
	'{params{name') unquote "$2" && name=$text ;;
	'{params{type') unquote "$2" && type=$text ;;
	'{params{dir') unquote "$2" && dir=$text ;;
	'{params{config[{key') unquote "$2" && key=$text ;;
	'{params{config[{value') value=$2 ;;
	esac
}

# An entry of the configuration is complete: only known keys become variables.
take_entry() {
	[ "$value" = null ] && value=
	unquote "$value"
	case $key in
	name) config_name=$text ;;
	loud) config_loud=$text ;;
	path) config_path=$text ;;
	text) config_text=$text ;;
	esac
	key= value=
}

# Print the tokens of $body, one on each line: JSON has no raw line breaks inside strings.
tokens() {
	printf '%s\n' "$body" | tr '\n\r\t' '   ' | sed 's/"[^"\\]*\(\\.[^"\\]*\)*"/\
&\
/g' | sed '/^"/!s/[][{},:]/\
&\
/g' | sed 's/^ *//; s/ *$//; /^$/d'
}

# Parse $body. False if it is not JSON.
parse() {
	path= expect=value
	while IFS= read -r token; do
		case $expect:$token in
		value:'{' | element:'{') path=$path'{' expect=member ;;
		value:'[' | element:'[') path=$path'[' expect=element ;;
		value:[!],:}]* | element:[!],:}]*) scalar "$token" || return 1 ;;
		key:\"*\" | member:\"*\") member "$token" ;;
		colon::) expect=value ;;
		more:,) more ;;
		element:']') leave '[' ;;
		member:'}') leave '{' ;;
		more:']') case $path in *'[') leave '[' ;; *) return 1 ;; esac ;;
		more:'}') case $path in *'[') return 1 ;; *) leave '{' ;; esac ;;
		*) return 1 ;;
		esac
	done <<-TOKENS
		$(tokens)
	TOKENS
	[ "$expect" = end ]
}

scalar() {
	case $1 in
	\"*\" | true | false | null) ;;
	*[!-+.0-9Ee]* | [!-0-9]*) return 1 ;;
	esac
	take "$path" "$1" && after
}

# A name that is no plain word is unknown.
member() {
	case $1 in
	*[!A-Za-z0-9_\"]*) path=$path'?' ;;
	*) path=$path${1#?} && path=${path%?} ;;
	esac
	case $path in
	'{result' | '{error') is_answer=1 ;;
	esac
	expect=colon
}

more() {
	case $path in
	*'[') expect=value ;;
	*) path=${path%'{'*}'{' expect=key ;;
	esac
}

leave() {
	path=${path%"$1"*}
	[ "$path$1" != '{params{config[{' ] || take_entry
	after
}

after() {
	[ -n "$path" ] && expect=more || expect=end
}

# Set $text to the value of the raw string; other tokens stay as they are.
unquote() {
	text=$1
	case $text in
	\"*\") text=${text#?} && text=${text%?} ;;
	*) return 0 ;;
	esac
	case $text in
	*\\*) ;;
	*) return 0 ;;
	esac
	left=$text text= high=
	while :; do
		part=${left%%\\*} && text=$text$part
		[ "$part" != "$left" ] || return 0
		left=${left#"$part"}
		case $left in
		\\n*) text=$text$NL left=${left#??} ;;
		\\t*) text="$text	" left=${left#??} ;;
		\\r*) text=$text$CR left=${left#??} ;;
		\\u????*)
			part=${left#??} && part=${part%"${part#????}"} && left=${left#??????}
			case $part in
			*[!0-9A-Fa-f]*) ;;
			*) codepoint $((0x$part)) ;;
			esac
			;;
		\\[bf]*) left=${left#??} ;;
		*) part=${left#?} && text=$text${part%"${part#?}"} left=${left#??} ;;
		esac
	done
}

# Append a code point to $text, in UTF-8. The first half of a surrogate pair is kept in $high.
codepoint() {
	if [ "$1" -ge 55296 ] && [ "$1" -le 56319 ]; then
		high=$(($1 - 55296))
		return
	elif [ "$1" -ge 56320 ] && [ "$1" -le 57343 ]; then
		set -- $((65536 + ${high:-0} * 1024 + $1 - 56320))
	fi
	if [ "$1" -lt 128 ]; then
		set -- "$1"
	elif [ "$1" -lt 2048 ]; then
		set -- $((192 + $1 / 64)) $((128 + $1 % 64))
	elif [ "$1" -lt 65536 ]; then
		set -- $((224 + $1 / 4096)) $((128 + $1 / 64 % 64)) $((128 + $1 % 64))
	else
		set -- $((240 + $1 / 262144)) $((128 + $1 / 4096 % 64)) $((128 + $1 / 64 % 64)) $((128 + $1 % 64))
	fi
	text=$text$(for byte; do printf "\\$(printf %03o "$byte")"; done && echo .) && text=${text%.}
}

# Set $escaped to the text as a JSON string without its quotes.
escape() {
	escaped=$(printf %s "$1" | tr '\001-\010\013-\037' '?' | sed 's/[\\"]/\\&/g; s/	/\\t/g; $!s/$/\\n/' | tr -d '\n')
}

# --- The conversation ----------------------------------------------------------------------------

introduced= ready= closing= set_name= set_loud=
while receive; do
	id= method= jsonrpc= has_method= is_answer=
	protocol= version= name= type= dir= key= value=
	config_name= config_loud= config_path= config_text=
	if ! parse; then
		id= && failure -32700 "This is not JSON."
		continue
	fi
	[ "$id" = null ] && id=
	case $id in
	'' | \"*\" | [0-9]* | -[0-9]*) ;;
	*) id= && has_method= ;;
	esac
	if [ "$jsonrpc" = '"2.0"' ] && [ -n "$has_method" ] && [ -n "$method" ]; then
		answer
	elif [ -z "$is_answer" ]; then
		failure -32600 "This is not a message."
	fi
done
