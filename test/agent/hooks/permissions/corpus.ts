// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are lines for a shell
// Makes command lines that run one program in ways that are hard to see: names that are spelled oddly, inside of wrappers inside of
// wrappers, among harmless commands. The same seed makes the same lines.

/** Numbers from 0 up to 1. */
type Random = () => number;

/** Mulberry32. */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** One word for a shell. */
const single = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
const double = (text: string) => `"${text.replace(/[\\"$`]/g, "\\$&")}"`;
const octal = (text: string) =>
  [...text].map((char) => `\\${char.charCodeAt(0).toString(8).padStart(3, "0")}`).join("");
const base64 = (text: string) => Buffer.from(text).toString("base64");
/** A string of C, as awk, Perl and Python have it. */
const quotedC = (text: string) => JSON.stringify(text).replace(/[$@]/g, "\\$&");

export interface Payload {
  readonly program: string;
  readonly argument: string;
}

/** The program's name, in the words of a shell. */
const NAMES: readonly ((name: string) => string)[] = [
  (name) => name,
  (name) => `'${name}'`,
  (name) => `"${name}"`,
  (name) => `\\${name}`,
  (name) => `${name[0]}''${name.slice(1)}`,
  (name) => `${name[0]}""${name.slice(1)}`,
  (name) => `${name[0]}\\${name.slice(1)}`,
  (name) => `${name[0]}\\\n${name.slice(1)}`,
  (name) => `${name[0]}"${name.slice(1)}"`,
  (name) => `${name[0]}$9${name.slice(1)}`,
  (name) => `\${nothing}${name}`,
  (name) => `\${nothing:-${name}}`,
  (name) => `"\${nothing:-${name}}"`,
  (name) => `$(echo ${name})`,
  (name) => `"$(echo ${name})"`,
  (name) => `\`echo ${name}\``,
  (name) => `$(printf '${octal(name)}')`,
  (name) => `$(echo ${base64(name)} | base64 -d)`,
  (name) => `$'${octal(name)}'`,
  (name) => `/usr/bin/${name}`,
  (name) => `/bin/../bin/${name}`,
  (name) => `/usr/bin/${name.slice(0, -1)}?`,
  (name) => `/usr/bin/[${name[0]}]${name.slice(1)}`,
  (name) => `/*/bin/${name}`,
  (name) => `$(which ${name})`,
  (name) => `$(command -v ${name})`,
];

const FRONTS: readonly string[] = [
  ..."command|exec|env|nohup|setsid -w|nice|nice -n 5|timeout 5|timeout -k 1 5s|stdbuf -oL|linux64|setarch -R".split(
    "|",
  ),
  ..."prlimit --nofile=100|choom -n 0 --|chrt -o 0|ionice -c 3|taskset 1|env -i PATH=/usr/bin:/bin|env A=1|A=1|x=1 y=2".split(
    "|",
  ),
  ..."env -u A --|busybox|>out|2>&1|!|time|exec env command|unshare|flock l|xargs </dev/null|eval|busybox env".split(
    "|",
  ),
  ..."/lib64/ld-linux-x86-64.so.2 /bin/env|script -qc|nsenter|setpriv|runuser -u root --|env -S|env -vS|command -p".split(
    "|",
  ),
];

/** The line with the program in it, run by something else. */
type Wrapper = (line: string, tag: string) => string;

const COMMAND_STRINGS: readonly string[] = [
  ..."sh -c|dash -c|sh -ec|/bin/sh -c|env sh -c|eval|command eval|env -i PATH=/bin sh -c|timeout 5 sh -c|nohup sh -c".split(
    "|",
  ),
  ..."setsid -w sh -c|flock l -c|flock l sh -c|find . -maxdepth 0 -exec sh -c|xargs sh -c|xargs -I{} sh -c".split(
    "|",
  ),
  ..."split --filter|linux64 sh -c|prlimit --nofile=100 sh -c|stdbuf -oL sh -c|nice sh -c|choom -n 0 -- sh -c|exec sh -c".split(
    "|",
  ),
  ..."busybox sh -c|command sh -c|awk 'BEGIN { system(ARGV[1]) }'|perl -e 'system shift'|setarch -R sh -c".split(
    "|",
  ),
  ..."python3 -c 'import os,sys; os.system(sys.argv[1])'|perl -e 'exec shift'|script -qc|env -S 'sh -c'|runuser root -c".split(
    "|",
  ),
];

function byString(command: string, text: string): string {
  if (command.startsWith("find")) return `${command} ${text} \\;`;
  if (command === "split --filter") return `split --filter=${text} f`;
  if (command.startsWith("xargs")) return `echo x | ${command} ${text}`;
  return `${command} ${text}`;
}

const WRAPPERS: readonly Wrapper[] = [
  ...COMMAND_STRINGS.flatMap((command): Wrapper[] => [
    (line) => byString(command, single(line)),
    (line) => byString(command, double(line)),
  ]),
  (line) => `{ ${line}\n}`,
  (line) => `(${line})`,
  (line) => `( (${line}) )`,
  (line) => `if :; then ${line}\nfi`,
  (line) => `if ${line}\nthen :; else :; fi`,
  (line) => `while :; do ${line}\nbreak; done`,
  (line) => `until ! :; do ${line}\nbreak; done`,
  (line) => `for i in 1; do ${line}\ndone`,
  (line) => `case a in a) ${line}\n;; esac`,
  (line) => `case a in (b) ;; (a) ${line}\nesac`,
  (line, tag) => `f${tag}() { ${line}\n}; f${tag}`,
  (line, tag) => `f${tag}() ( ${line}\n)\nls; f${tag} x`,
  (line) => `ls() { ${line}\n}; ls`,
  (line, tag) => `alias a${tag}=${single(line)}\na${tag}`,
  (line) => `trap ${single(line)} EXIT`,
  (line) => `trap ${double(line)} 0; exit`,
  (line) => `x=${single(line)}; eval "$x"`,
  (line) => `x=${double(line)}\neval $x`,
  (line) => `set -- ${single(line)}; eval "$1"`,
  (line) => `echo $(${line})`,
  (line) => `echo "$(${line})"`,
  (line) => `x=$(${line})`,
  (line) => `ls "a $(echo "b $(${line})") c"`,
  (line) => `echo \`${line.replace(/[\\`$]/g, "\\$&")}\``,
  (line) => `echo "\`${line.replace(/[\\`$"]/g, "\\$&")}\`"`,
  (line) => `echo \${nothing:-$(${line})}`,
  (line) => `echo "\${nothing:=$(${line})}"`,
  (line) => `echo $(( $(${line} >/dev/null; echo 1) + 1 ))`,
  (line) => `cat <<END\n$(${line})\nEND`,
  (line) => `cat <<'END' | sh\n${line}\nEND`,
  (line) => `sh <<'END'\nit=1\n${line}\nEND`,
  (line) => `sh -s x <<\\END\n${line}\nEND`,
  (line) => `sh <<-'END'\n${line}\n\tEND`,
  (line) => `. /dev/stdin <<'END'\n${line}\nEND`,
  (line) => `if :; then sh; fi <<'END'\n${line}\nEND`,
  (line) => `cat <<'A'; cat <<'B' | sh\nit's\nA\n${line}\nB`,
  (line) => `echo ${single(line)} | sh`,
  (line) => `printf '%s\\n' ${double(line)} | sh -s`,
  (line) => `printf '${octal(line)}' | sh`,
  (line) => `echo ${base64(line)} | base64 -d | sh`,
  (line) => `eval "$(echo ${base64(line)} | base64 -d)"`,
  (line) => `sh -c "$(printf '${octal(line)}')"`,
  (line) => `echo ${single(line)} | tr a-z a-z | tee log | sh`,
  (line) => `printf %s ${single(line)} > s; sh s`,
  (line) => `printf %s ${single(line)} > s; sh < s`,
  (line) => `printf %s ${single(line)} > s; . ./s`,
  (line) => `printf '#!/bin/sh\\n%s' ${single(line)} > s; chmod +x s; ./s`,
  (line) => `printf '#!/bin/sh\\n%s' ${single(line)} > s; chmod +x s; PATH=.:$PATH s`,
  (line) => `printf '#!/bin/sh\\n%s' ${single(line)} > ls; chmod +x ls; PATH=.:$PATH; ls`,
  (line) => `printf '#!/bin/sh\\n%s' ${single(line)} > ls; chmod +x ls; export PATH=.:$PATH; env ls`,
  (line) => `printf '#!/bin/sh\\n%s' ${single(line)} > ls; chmod +x ls; for PATH in .; do ls; done`,
  (line) => `cat > s <<'END'\n${line}\nEND\nsh s`,
  (line) => `tee s <<'END' >/dev/null\n${line}\nEND\n. ./s`,
  (line) => `awk 'BEGIN { system(${quotedC(line).replaceAll("'", "'\\''")}) }'`,
  (line) => `awk -v c=${single(quotedC(line).slice(1, -1))} 'BEGIN { print c | "sh" }'`,
  (line) => `perl -e ${single(`system(${quotedC(line)})`)}`,
  (line) => `perl -we ${single(`print \`${line.replace(/[\\`$@]/g, "\\$&")}\``)}`,
  (line) => `python3 -c ${single(`import os; os.system(${JSON.stringify(line)})`)}`,
  (line) => `echo ${single(`import os; os.system(${JSON.stringify(line)})`)} > s.py; python3 s.py`,
  (line) => `echo ${single(`import os; os.system(${JSON.stringify(line)})`)} | python3`,
  (line) => `python3 - <<'END'\nimport os; os.system(${JSON.stringify(line)})\nEND`,
  (line) => `tar -cf /dev/null --checkpoint=1 --checkpoint-action=exec=${single(line)} f`,
  (line) => `tar -cf x.tar f; tar -xf x.tar --to-command=${single(line)}`,
  (line) => `tar -cf x -I ${single(`sh -c ${single(line)}`)} f`,
  (line) => `tar cfI x ${single(`sh -c ${single(line)}`)} f`,
  (line) => `sed ${single(`1e ${line.replaceAll("\n", ";")}`)} f`,
  (line) => `sed -n ${single(`1{s/.*/sh s/e;p}`)} f; printf %s ${single(line)} > s; sed '1s/.*/sh s/e' f`,
  (line) => `split -l 1 --filter=${single(line)} f`,
  (line) => `find . -name f -exec sh -c ${single(line)} {} +`,
  (line) => `find f -ok sh -c ${single(line)} \\; < y`,
  (line) => `printf '%s\\0' ${single(line)} | xargs -0 sh -c`,
  (line) => `printf '%s\\0' -c ${single(line)} | xargs -0 sh`,
  (line) => `ls | ${line}`,
  (line) => `${line} | cat`,
  (line) => `: && ${line}`,
  (line) => `false || ${line}`,
  (line) => `${line} &\nwait`,
  (line) => `ls & ${line}`,
  (line) => `# it's "\n${line}`,
  (line) => `ls # \\\n${line}`,
  (line) => `ls 'a\\'; ${line} # '`,
  (line) => `echo "a\\"; ${line} #"\n${line}`,
  (line) => `ls;${line}`,
  (line) => `ls\n\n\t${line}`,
  (line) => `\\\n ${line}`,
  (line) => `>out 2>&1; ${line}`,
  (line) => `IFS=_; ${line}`,
  (line) => `set -e; ${line}`,
  (line) => `cd . && ${line}`,
  (line) => `read x <<END\na\nEND\n${line}`,
  (line) => `cat <<END; ${line.replaceAll("\n", ";")}\nit's\nEND`,
  (line) => `echo "$(cat <<'END'\n)\nEND\n${line}\n)"`,
  (line) => `env -S ${single(line)}`,
  (line) => `env -iS ${single(line)}`,
  (line) => `env --split-string=${single(line)}`,
];

/** The whole line; nothing can be put around the program. */
const DIRECT: readonly ((payload: Payload, name: string) => string)[] = [
  ({ argument }, name) => `echo ${argument} | xargs ${name}`,
  ({ argument }, name) => `ls | xargs -I{} ${name} ${argument}`,
  ({ argument }, name) => `find . -name ${argument} -exec ${name} {} \\;`,
  ({ argument }, name) => `find . -name ${argument} -execdir ${name} {} +`,
  ({ argument }, name) => `c=${name}; $c ${argument}`,
  ({ argument }, name) => `set -- ${name} ${argument}; "$@"`,
  ({ argument }, name) => `for c in ${name}; do $c ${argument}; done`,
  ({ argument }, name) => `f() { "$@"; }; f ${name} ${argument}`,
  ({ program, argument }) => `cp /usr/bin/${program} x; ./x ${argument}`,
  ({ program, argument }) => `ln -s /usr/bin/${program} x; ./x ${argument}`,
  ({ program, argument }) => `cat /usr/bin/${program} > x; chmod +x x; $PWD/x ${argument}`,
  ({ program, argument }) => `mkdir b; cp /usr/bin/${program} b/ls; PATH=$PWD/b:$PATH ls ${argument}`,
  ({ program, argument }) => `cd /usr/bin; ./${program} "$OLDPWD"/${argument}`,
  ({ program, argument }) => `PATH=/usr/bin/${program}:$PATH; ${program} ${argument}`,
  ({ program, argument }) => `/lib64/ld-linux-x86-64.so.2 /usr/bin/${program} ${argument}`,
  ({ program, argument }) => `IFS=_; x=${program}_${argument}; $x`,
  ({ program, argument }) => `x=${program}:${argument}; IFS=:; $x`,
  ({ program, argument }) => `awk 'BEGIN { "${program} ${argument}" | getline }'`,
  ({ program, argument }) => `printf '${octal(program)} ${argument}\\n' | while read -r a b; do $a $b; done`,
  ({ program, argument }) => `echo '${program} ${argument}' | while read -r x; do eval "$x"; done`,
  ({ program, argument }) => `{ echo ${program}; echo ${argument}; } | xargs env`,
  ({ program, argument }) => `seq 1 | sed 's/1/${program} ${argument}/e'`,
  ({ program, argument }) => `perl -e 'exec qw(${program} ${argument})'`,
  ({ program, argument }) => `perl -e '$x="${program.split("").join('"."')}"; system $x,"${argument}"'`,
  ({ program, argument }) => `python3 -c "import subprocess as s; s.run(['${program}','${argument}'])"`,
  ({ program, argument }) => `tar -cf x f -I'${program} ${argument};cat'`,
  ({ program, argument }) => `sort -S1 --compress-prog=${program} f ${argument}`,
];

export function commandLine(payload: Payload, random: Random): string {
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const name = pick(NAMES)(payload.program);
  const fronts = Array.from({ length: Math.floor(random() ** 3 * 4) }, () => pick(FRONTS));
  let line =
    random() < 0.15
      ? pick(DIRECT)(payload, name)
      : [...fronts, name, payload.argument].join(random() < 0.1 ? "\t" : " ");
  const depth = Math.floor(random() * 4);
  for (let level = 0; level < depth; level++) line = pick(WRAPPERS)(line, `${level}`);
  return line;
}
