/** Maps the package's option names to the options of the command. */
export type OptionNames = ReadonlyMap<string, string>

/** Replaces the package's option names in a message with the options of the command. */
export const withOptionNames = (message: string, names: OptionNames): string =>
  message
    .replace(/^\w+ options: /, '')
    .replaceAll(/(?<![\w-])[a-zA-Z]+\b/g, (word) => names.get(word) ?? word)
