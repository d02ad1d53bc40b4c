/** What `npm run bench -- --json` hands over. */
export interface BenchmarkReport {
  readonly package: { readonly name: string; readonly version: string }
  readonly date: string
  readonly node: string
  /** Of servers and packages, by their names. */
  readonly versions: Readonly<Record<string, string>>
  readonly machine: {
    readonly cpu: string
    readonly cores: number
    readonly memoryGiB?: number
    readonly os?: string
  }
  readonly sections: readonly BenchmarkSection[]
}

export interface BenchmarkSection {
  readonly name: string
  readonly tables: readonly BenchmarkTable[]
}

/** The first column names what was measured, and its head what all rows are about. */
export interface BenchmarkTable {
  readonly columns: readonly string[]
  readonly rows: readonly (readonly string[])[]
}
