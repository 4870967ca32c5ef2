module strict

go 1.24.4

require github.com/reginald-project/reginald-sdk-go v0.0.0-20250703170709-bd0d87e15659
