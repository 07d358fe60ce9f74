// The helper's operations on files and folders. Large folders are listed, searched and removed in slices.

import { HOME, STAGING } from "../prelude.ts";
import { CHUNK_BYTES, MAX_LISTED, MAX_OPEN, MAX_WALKED, MAX_WALKED_BYTES } from "./frames.ts";

export const FILES = `
my (%open, $uses);    # files that several requests read or write, by operation

sub keep {
    my ($id, $what) = @_;
    $what->{used} = ++$uses;
    $open{$id} = $what;
    return if keys %open <= ${MAX_OPEN};
    my ($oldest) = sort { $open{$a}{used} <=> $open{$b}{used} } keys %open;
    drop($oldest);
}

sub drop {
    my $dropped = delete $open{$_[0]} or return;
    unlink $dropped->{staged} if defined $dropped->{staged};
}

sub kept { $open{$_[0]} or refuse("CLOSED") }

sub told {
    my ($id, $path) = @_;
    my ($name, @stat) = find($path);
    answer($id, "k", facts(@stat), from_root($name));
}

# Opens only regular files: opening others may block or have an effect.
sub open_file {
    my ($name, @stat) = @_;
    require_file(@stat);
    sysopen my $file, $name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW or os();
    @stat = stat $file;
    require_file(@stat);
    return ($file, $stat[7]);
}

sub bytes_of {
    my ($file, $most) = @_;
    my $bytes = "";
    while (length $bytes < $most) {
        my $count = sysread $file, $bytes, $most - length $bytes, length $bytes;
        defined $count or os();
        last if $count == 0;
    }
    return $bytes;
}

# Reads up to the current size, so that reading a growing file ends.
sub begin_read {
    my ($id, $path, $offset, $length) = @_;
    my ($file, $size) = open_file(find($path));
    my $end = $length eq "" || $offset + $length > $size ? $size : $offset + $length;
    return answer($id, "k", 0, "") if $offset >= $end;
    sysseek $file, $offset, 0 or os();
    read_on($id, { file => $file, left => $end - $offset });
}

sub read_on {
    my ($id, $read) = @_;
    my $bytes = bytes_of($read->{file}, $read->{left} < ${CHUNK_BYTES} ? $read->{left} : ${CHUNK_BYTES});
    $read->{left} -= length $bytes;
    my $has_more = length $bytes && $read->{left} ? 1 : 0;
    if ($has_more) { keep($id, $read) } else { drop($id) }
    answer($id, "k", $has_more, $bytes);
}

sub contents {
    my ($id, $most, @paths) = @_;
    my $room = ${CHUNK_BYTES};
    my @contents;
    begin($id, sub {
        for (1 .. 16) {
            my ($word, $bytes) = @paths ? content(shift @paths, $most, $room) : "later";
            if ($word eq "later") {
                answer($id, "k", @contents);
                return 1;
            }
            push @contents, $word, $bytes;
            $room -= length $bytes;
        }
        return 0;
    });
}

sub content {
    my ($path, $most, $room) = @_;
    my @content = eval {
        my ($file, $size) = open_file(find($path));
        return ("none", "") if $size > $most;
        return ("large", "") if $size > ${CHUNK_BYTES};
        return "later" if $size > $room;
        return ("file", bytes_of($file, $size));
    };
    return @content ? @content : ("none", "");
}

sub begin_write {
    my ($id, $path, $is_last, $bytes) = @_;
    place($path);
    my $staged = stage();
    sysopen my $file, $staged, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666 or os();
    keep($id, { path => $path, file => $file, staged => $staged });
    write_on($id, $is_last, $bytes);
}

sub write_on {
    my ($id, $is_last, $bytes) = @_;
    my $write = kept($id);
    $write->{used} = ++$uses;
    for (my $at = 0; $at < length $bytes; ) {
        my $count = syswrite $write->{file}, $bytes, length($bytes) - $at, $at;
        defined $count or os();
        $at += $count;
    }
    if ($is_last) {
        my ($name, $mode) = place($write->{path});
        not defined $mode or chmod $mode, $write->{file} or os();
        close $write->{file} or os();
        rename $write->{staged}, $name or os();
        delete $open{$id};
    }
    answer($id, "k");
}
`;

export const FOLDERS = `
sub is_self { $_[0] eq "." or $_[0] eq ".." }

sub list {
    my ($id, $path) = @_;
    my ($name, @stat) = find($path);
    refuse("NOFOLDER") if kind(@stat) ne "d";
    my $folder = from_root($name);
    go($name);
    opendir my $entries, "." or os();
    my $count = 0;
    begin($id, sub {
        go($entries);
        my (@found, $is_over);
        for (1 .. 200) {
            my $entry = $count < ${MAX_LISTED} ? readdir $entries : undef;
            $is_over = not defined $entry;
            last if $is_over;
            next if is_self($entry);
            @stat = lstat $entry or next;
            push @found, facts(@stat), $entry;
            $count++;
        }
        answer($id, "d", @found) if @found;
        answer($id, "k", $folder) if $is_over;
        return $is_over;
    });
}

# Does not follow links. Skips a folder that is missing or unreadable.
sub walk {
    my ($id, $start, @skipped) = @_;
    my %is_skipped = map { ($_ => 1) } @skipped;
    my @folders = $start;
    my ($seen, $bytes) = (0, 0);
    my ($folder, $entries);
    begin($id, sub {
        my (@found, $end);
        my $room = ${CHUNK_BYTES};
        undef $entries if $entries and not chdir $entries;
        for (1 .. 200) {
            if (not $entries) {
                $folder = pop @folders;
                $end = "all" if not defined $folder;
                last if $end;
                eval { enter($folder); opendir $entries, "." } or undef $entries;
                next;
            }
            my $name = readdir $entries;
            undef $entries if not defined $name;
            next if not defined $name or is_self($name);
            my $path = $folder eq "" ? $name : "$folder/$name";
            $bytes += 4 + length $path;
            $end = "more" if ++$seen > ${MAX_WALKED} or $bytes > ${MAX_WALKED_BYTES};
            last if $end;
            my @stat = lstat $name or next;
            my $kind = kind(@stat);
            if ($kind eq "f") {
                push @found, $path;
                last if ($room -= 4 + length $path) < 0;
            }
            elsif ($kind eq "d" and not $is_skipped{$name} and $path ne "${STAGING}" and $path ne "${HOME}") {
                push @folders, $path;
            }
        }
        answer($id, "d", @found) if @found;
        answer($id, "k", $end) if $end;
        return $end;
    });
}

# Moves a folder to staging and erases it there. Without staging, erases it in place.
sub remove {
    my ($id, $path) = @_;
    my ($folder, $name) = parted($path);
    enter(defined $folder ? $folder : "");
    my @stat = lstat $name or os();
    if (kind(@stat) ne "d") {
        unlink $name or os();
        return answer($id, "k");
    }
    my $grave = eval { stage() };
    return erase($id, "$here/$name", "stays") if not defined $grave;
    # Moving a folder changes its "..", so the folder's mode must allow writing.
    chmod 0700 | $stat[2] & 07777, $name;
    return erase($id, $grave) if rename $name, $grave;
    # The folder contains staging, or is on another disk.
    os() unless $!{EINVAL} or $!{EXDEV};
    erase($id, "$here/$name", "stays");
}

# Moves inner folders up first, so that any depth can be erased.
sub erase {
    my ($id, $top, $stays) = @_;
    my @folders = $top;
    my ($folder, $entries, %tries, $fault);
    begin($id, sub {
        undef $entries if $entries and not chdir $entries;
        for (1 .. 100) {
            if (not $entries) {
                $folder = pop @folders;
                if (not defined $folder) {
                    refuse($fault || "EBUSY") if $stays and lstat $top;
                    answer($id, "k");
                    return 1;
                }
                chmod 0700, $folder;
                next if chdir $folder and opendir $entries, ".";
                $fault = errno();
                undef $entries;
                next;
            }
            my $name = readdir $entries;
            if (not defined $name) {
                undef $entries;
                next if rmdir $folder;
                $fault = errno() unless $!{ENOTEMPTY};
                # Remaining entries were moved up, or omitted by a disk that changed while it was read.
                unshift @folders, $folder if ++$tries{$folder} < 3;
                next;
            }
            next if is_self($name) or unlink $name;
            my $code = errno();
            if (not lstat $name or not -d _) {
                $fault = $code;
                next;
            }
            chmod 0700, $name;
            my $moved = "$top/" . ($folder eq $top ? $name : unique());
            push @folders, $moved if $folder eq $top or rename $name, $moved;
        }
        answer($id, "p");
        return 0;
    }, "goes_on");
}
`;
